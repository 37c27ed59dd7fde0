"""Whether the text with all mutants means, for each of them, what cargo-mutants writes when it makes that one alone.

The new text is read with one mutant on: each switch is replaced by what it chooses. The old text is changed as
cargo-mutants does it. Both are compared as syntax trees, in which brackets around an expression are nothing of their own. Not compared
are deleted fields, whose value then stands elsewhere. Run by `scripts/mutants CRATE --check-sources`.
"""
import collections
import pathlib

from . import mutant_sources
from .mutant_sources import parse

ROOT = pathlib.Path(__file__).resolve().parents[2]

def inner(node):
    """The node without brackets and comments around it."""
    while node.type in ("parenthesized_expression", "expression_statement") and len(named(node)) == 1:
        node = named(node)[0]
    return node


def named(node):
    return [child for child in node.named_children if "comment" not in child.type]


def switch(node):
    """Name and arguments of a call of the switch, or `None`."""
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    if function is None or not function.text.startswith(b"::mutation_switch::"):
        return None
    return function.text.rpartition(b"::")[2].decode(), named(node.child_by_field_name("arguments"))


class Reader:
    """Reads a tree as if one mutant was on; `None`: none is, and there is no switch."""

    def __init__(self, on):
        self.on = on
        self.bound = {}

    def number(self, arguments):
        first, count = (int(argument.text) for argument in arguments)
        return self.on - first + 1 if first <= self.on < first + count else 0

    def read(self, node):
        """The tree as nested tuples."""
        node = inner(node)
        special = {"match_expression": self.match, "call_expression": self.call, "block": self.block,
                   "match_block": self.arms, "identifier": self.name, "unary_expression": self.unary}.get(node.type)
        found = special(node) if special else None
        return self.plain(node) if found is None else found

    def plain(self, node):
        children = [child for child in node.children if "comment" not in child.type and child.type != ","]
        return (node.type, *map(self.read, children)) if children else (node.type, node.text)

    def name(self, node):
        return self.bound.get(node.text)

    def unary(self, node):
        if node.children[0].type == "*" and node.children[-1].text in self.bound:
            # What a comparison compares is bound by reference: ("reference_expression", "&", the place).
            return self.bound[node.children[-1].text][-1]
        return None

    def match(self, node):
        value, arms = inner(node.child_by_field_name("value")), named(node.child_by_field_name("body"))
        called = switch(value)
        if called:
            number = self.number(called[1])
            return self.read(next(arm for arm in arms if chooses(arm, number)).child_by_field_name("value"))
        names = arms[0].child_by_field_name("pattern").text
        if names not in (b"(__l, __r)", b"__l", b"__x"):
            return None
        values = named(value) if names == b"(__l, __r)" else [value]
        before = dict(self.bound)
        inside = dict(zip((b"__l", b"__r") if names != b"__x" else (b"__x",), map(self.read, values)))
        body = inner(arms[0].child_by_field_name("value"))
        if body.type == "if_expression":
            return self.lazy(body, inside[b"__l"])
        self.bound = {**before, **inside}
        found = self.read(body)
        self.bound = before
        return found

    def lazy(self, node, left):
        number, _, decisive = switch(node.child_by_field_name("condition"))[1]
        right = switch(inner(named(named(node.child_by_field_name("alternative"))[0])[0]))[1][2]
        is_and = (decisive.text == b"false") != (int(number.text) == self.on)
        operator = "&&" if is_and else "||"
        return ("binary_expression", left, (operator, operator.encode()), self.read(right))

    def call(self, node):
        called = switch(node)
        if called and called[0] == "choose":
            first, original, mutants = called[1]
            mutants = named(mutants)
            number = self.on - int(first.text)
            return self.read(mutants[number] if 0 <= number < len(mutants) else original)
        return None

    def block(self, node):
        statements = named(node)
        if statements:
            first = inner(statements[0])
            called = first.type == "match_expression" and switch(inner(first.child_by_field_name("value")))
            arms = named(first.child_by_field_name("body")) if called else []
            if any(arm.text.startswith(b"_ => {}") for arm in arms):
                number = self.number(called[1])
                if number:
                    chosen = next(arm for arm in arms if chooses(arm, number)).child_by_field_name("value")
                    return ("block", self.read(named(chosen)[0]))
                statements = statements[1:]
        return ("block", *map(self.read, statements))

    def arms(self, node):
        found = []
        for arm in named(node):
            pattern, value = arm.child_by_field_name("pattern"), arm.child_by_field_name("value")
            condition = pattern.child_by_field_name("condition")
            kept, condition = self.condition(condition) if condition else (True, None)
            if kept:
                parts = [child for child in pattern.children if "comment" not in child.type]
                until = next((at for at, child in enumerate(parts) if child.type == "if"), len(parts))
                found.append((tuple(map(self.read, parts[:until])), condition, self.read(value)))
        return ("match_block", *found)

    def condition(self, condition):
        """Whether the arm is there, and the guard that is left."""
        condition = inner(condition)
        left = inner(condition.child_by_field_name("left")) if condition.type == "binary_expression" else None
        if left is None:
            return True, self.read(condition)
        called = switch(left)
        if called:
            return self.number(called[1]) == 0, None
        first = inner(left.child_by_field_name("left")) if left.type == "binary_expression" else left
        called = switch(first)
        if called:
            return self.number(called[1]) == 0, self.read(condition.child_by_field_name("right"))
        return True, self.read(condition)


def chooses(arm, number):
    """Whether the arm is the one of this number."""
    for pattern in arm.child_by_field_name("pattern").text.decode().split(" | "):
        start, dots, _ = pattern.partition("..")
        if pattern == "_" or (number >= int(start) if dots else number == int(start)):
            return True
    return False


def path_to(root, offset):
    """Which of the items at each level holds the place, down to a function."""
    path, node = [], root
    while node.type in ("source_file", "impl_item", "trait_item", "mod_item", "declaration_list"):
        children = named(node)
        path.append(next(at for at, child in enumerate(children) if child.end_byte > offset))
        node = children[path[-1]]
    return path


def below(root, path):
    for at in path:
        root = named(root)[at]
    return root


def check(mutants):
    """Prints the names of those that differ, and how many there are; `mutants`: what cargo-mutants lists."""
    by_file, counts = {}, collections.Counter()
    for mutant in mutants:
        by_file.setdefault(mutant["file"], []).append(mutant)
    for name, mutants in by_file.items():
        text = (ROOT / name).read_bytes()
        file, lines = mutant_sources.File(text, mutants), mutant_sources.numbered_lines(text)
        numbers = {mutant: number for number, mutant in enumerate(file.number(0))}
        old, together = parse(text), parse(file.render(set()))
        for mutant in mutants:
            if mutant["name"] not in numbers or mutant["genre"] == "StructField":
                counts["not compared"] += 1
                continue
            start, end = mutant_sources.offsets(lines, mutant["span"])
            alone = parse(text[:start] + mutant["replacement"].encode() + text[end:])
            path = path_to(old, start)
            same = Reader(numbers[mutant["name"]]).read(below(together, path)) == Reader(-1).read(below(alone, path))
            counts["the same" if same else "different"] += 1
            if not same:
                print(mutant["name"])
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
