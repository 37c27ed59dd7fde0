"""Sources that hold all mutants of a crate at once, each behind a switch that is set when the program starts.

Invariant: while no mutant is on, the new text does what the old one does, and while one is on, what the old text does
with that mutant. Operands are evaluated once, in their order, and no more of them than before; only what a comparison
compares is looked at several times. One thing differs: here the new operator has the operands of the old one, while
cargo-mutants exchanges its text, so that `x - a * b` in place of `x - a + b` is another expression.

A *site* is a place with one or more mutants, numbered one after another. What stands there, with operands L and R:

    l + r         (match (L, R) { (l, r) => match at(7, 2) { 0 | 3.. => l + r, 1 => l - r, 2 => l * r } })
    l < r         (match (&(L), &(R)) { (l, r) => choose(7, *l < *r, [*l == *r, *l > *r, *l <= *r]) })
    l && r        (match L { l => if decides(7, l, false) { l } else { right(7, l, R) } })
    l += r        (match at(7, 2) { 0 | 3.. => L += R, 1 => L -= R, 2 => L *= R })
    !x            (match at(7, 1) { 0 | 2.. => !X, 1 => X })
    a function    match at(7, 2) { 1 => return Ok(true), 2 => return Ok(false), _ => {} } before its first statement
    p if guard    p if (match unmarked(7, 2) { 1 => true, 2 => false, _ => choose(7, GUARD, [true, false]) })
    p => arm      p if at(7, 1) == 0 => arm
    field: value  field: (match at(7, 1) { 0 | 2.. => VALUE, 1 => (BASE).field })

L, R and the others are texts with sites of their own. Around each site stands a comment that names its mutants, and
around each text that only a mutant has another: so the compiler's errors say which mutants cannot be had in this form.
"""
import dataclasses
import re

import tree_sitter
import tree_sitter_rust

SWITCH = "::mutation_switch"
PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))
COMPARISONS = {"==", "!=", "<", "<=", ">", ">="}
LAZY = {"&&": "false", "||": "true"}
# Macros whose arguments are expressions: read as calls or arrays, their operators are found.
CALLS = re.compile(rb"\b((?:debug_)?assert(?:_eq|_ne)?|format|format_args|panic|unreachable"
                   rb"|e?print(?:ln)?|write(?:ln)?)!(?=\s*\()")
ARRAYS = re.compile(rb"\bvec!(?=\[)")
MARK = re.compile(rb"/\*<([sm])([\d,]+)\*/|/\*>\*/")


@dataclasses.dataclass
class Site:
    """A stretch of the text, what its mutants are, and the nodes that it is rewritten from."""
    kind: str
    start: int
    end: int
    node: tree_sitter.Node
    # (number or None if it is left out, replacement), in the order of the numbers.
    mutants: list
    first: int = 0
    inner: list = dataclasses.field(default_factory=list)


def parse(text):
    """The syntax tree. Macros that look like calls are read as such; no offset changes."""
    text = CALLS.sub(lambda found: found[0].replace(b"!", b" "), text)
    return PARSER.parse(ARRAYS.sub(b"   &", text)).root_node


def offsets(lines, span):
    """The bytes of a span, whose lines and columns count from one and in characters."""
    def offset(place):
        line = lines[place["line"] - 1]
        return line[0] + len(line[1].decode()[:place["column"] - 1].encode())
    return offset(span["start"]), offset(span["end"])


def numbered_lines(text):
    """Each line and where it begins."""
    found, start = [], 0
    for line in text.split(b"\n"):
        found.append((start, line))
        start += len(line) + 1
    return found


def locate(genre, root, start, end):
    """Kind, stretch and node of the site of a mutant there; `None` if it cannot be had in this form."""
    node = root.descendant_for_byte_range(start, end)
    if genre == "FnValue":
        return "function", start, start, node
    above = node.parent
    if genre == "BinaryOperator" and not above.has_error:
        if above.type == "compound_assignment_expr":
            return "assignment", above.start_byte, above.end_byte, above
        if above.type != "binary_expression":
            return None
        operator = node.type
        kind = "comparison" if operator in COMPARISONS else "lazy" if operator in LAZY else "operator"
        return kind, above.start_byte, above.end_byte, above
    if genre == "UnaryOperator" and above.type == "unary_expression" and not above.has_error:
        return "unary", above.start_byte, above.end_byte, above
    if genre == "MatchArmGuard" and not node.has_error:
        return "guard", start, end, node
    if genre == "MatchArm" and node.type == "match_arm":
        pattern = node.child_by_field_name("pattern")
        condition = pattern.child_by_field_name("condition")
        if condition is None:
            return "arm", pattern.end_byte, pattern.end_byte, node
        if condition.type in ("let_chain", "let_condition"):
            return None
        return "guarded arm", condition.start_byte, condition.end_byte, node
    if genre == "StructField":
        # The span has the comma as well.
        node = root.descendant_for_byte_range(start, start)
        while node.type not in ("field_initializer", "shorthand_field_initializer"):
            if node.type == "block":
                return None
            node = node.parent
        if any(child.type == "base_field_initializer" for child in node.parent.children):
            value = node.child_by_field_name("value") or node
            return "field", value.start_byte, value.end_byte, node
    return None


# Of two sites with the same stretch, the one further left is around the other.
AROUND = ["guarded arm", "guard", "field", "lazy", "comparison", "operator", "assignment", "unary", "arm", "function"]


class File:
    """The sites of one source file."""

    def __init__(self, text, mutants):
        """`mutants`: what cargo-mutants lists for the file. Sets `missed` to those that are not at a site."""
        self.text, root, lines = text, parse(text), numbered_lines(text)
        sites, self.missed = {}, []
        for mutant in mutants:
            start, end = offsets(lines, mutant["span"])
            found = locate(mutant["genre"], root, start, end)
            if found is None:
                self.missed.append(mutant["name"])
                continue
            site = sites.setdefault(found[:3], Site(*found, mutants=[]))
            site.mutants.append((mutant["name"], mutant["replacement"]))
        # What is inserted stands before what begins there, and what is around before what is within.
        def order(site):
            return site.start, site.end > site.start, -site.end, AROUND.index(site.kind)
        self.sites = sorted(sites.values(), key=order)
        self.outer = nest(self.sites)

    def number(self, first):
        """Numbers the mutants from here; the names, in that order."""
        names = []
        for site in self.sites:
            site.first = first + len(names)
            names += [name for name, _ in site.mutants]
        return names

    def render(self, dropped):
        """The text with all mutants but those that were dropped."""
        return Rendering(self.text, dropped).stretch(0, len(self.text), self.outer)


def nest(sites):
    """Puts each site below the one around it; those that are below none."""
    outer, open_sites = [], []
    for site in sites:
        while open_sites and not (site.end <= open_sites[-1].end and site.start >= open_sites[-1].start):
            open_sites.pop()
        (open_sites[-1].inner if open_sites else outer).append(site)
        if site.end > site.start:
            open_sites.append(site)
    return outer


def only_in(number, text):
    """Marks a text that only this mutant has."""
    return b"/*<m%d*/%s/*>*/" % (number, text)


class Rendering:
    """Writes the new text of a file."""

    def __init__(self, text, dropped):
        self.text, self.dropped = text, dropped

    def stretch(self, start, end, sites):
        """The text from `start` to `end` with these sites, as far as they lie there."""
        parts, at = [], start
        for site in sites:
            if start <= site.start and site.end <= end:
                parts += [self.text[at:site.start], self.site(site)]
                at = site.end
        return b"".join([*parts, self.text[at:end]])

    def part(self, site, node):
        """The text of a node below the site."""
        return self.stretch(node.start_byte, node.end_byte, site.inner)

    def site(self, site):
        """The text of a site; the old one if all its mutants were dropped."""
        live = {number: text.encode() for number, (name, text) in enumerate(site.mutants, site.first)
                if name not in self.dropped}
        if not live:
            return self.stretch(site.start, site.end, site.inner)
        text = getattr(self, site.kind.replace(" ", "_"))(site, live)
        return b"/*<s%s*/%s/*>*/" % (",".join(map(str, live)).encode(), text)

    def call(self, function, site):
        """`function(FIRST, COUNT)`."""
        return b"%s::%s(%d, %d)" % (SWITCH.encode(), function.encode(), site.first, len(site.mutants))

    def choice(self, site, live, original, mutants):
        """A match over the mutants; of those that were dropped the arm is the original's."""
        count = len(site.mutants)
        others = [b"%d" % (n - site.first + 1) for n in range(site.first, site.first + count) if n not in live]
        arms = [b" | ".join([b"0", *others, b"%d.." % (count + 1)]) + b" => " + original]
        arms += [b"%d => %s" % (number - site.first + 1, only_in(number, text)) for number, text in mutants.items()]
        return b"(match %s { %s })" % (self.call("at", site), b", ".join(arms))

    def operator(self, site, live):
        left, operator, right = operands(site.node)
        mutants = {number: b"__l %s __r" % text for number, text in live.items()}
        return b"(match (%s, %s) { (__l, __r) => %s })" % (
            self.part(site, left), self.part(site, right),
            self.choice(site, live, b"__l %s __r" % operator.text, mutants))

    def comparison(self, site, live):
        left, operator, right = operands(site.node)
        original = b"*__l %s *__r" % operator.text
        numbers = range(site.first, site.first + len(site.mutants))
        mutants = [only_in(n, b"*__l %s *__r" % live[n]) if n in live else original for n in numbers]
        return b"(match (&(%s), &(%s)) { (__l, __r) => %s::choose(%d, %s, [%s]) })" % (
            self.part(site, left), self.part(site, right), SWITCH.encode(), site.first, original, b", ".join(mutants))

    def lazy(self, site, live):
        left, operator, right = operands(site.node)
        (number,) = live
        return b"(match %s { __l => if %s::decides(%d, __l, %s) { __l } else { %s::right(%d, __l, %s) } })" % (
            self.part(site, left), SWITCH.encode(), number, LAZY[operator.type].encode(),
            SWITCH.encode(), number, self.part(site, right))

    def assignment(self, site, live):
        left, operator, right = operands(site.node)
        left, right = self.part(site, left), self.part(site, right)
        mutants = {number: b"%s %s %s" % (left, text, right) for number, text in live.items()}
        return self.choice(site, live, b"%s %s %s" % (left, operator.text, right), mutants)

    def unary(self, site, live):
        operator, operand = site.node.children[0], site.node.children[-1]
        value = self.part(site, operand)
        if not site.inner:
            return self.choice(site, live, operator.text + value, dict.fromkeys(live, value))
        choice = self.choice(site, live, operator.text + b"__x", dict.fromkeys(live, b"__x"))
        return b"(match %s { __x => %s })" % (value, choice)

    def function(self, site, live):
        arms = [b"%d => return %s," % (number - site.first + 1, only_in(number, text)) for number, text in live.items()]
        return b"match %s { %s _ => {} } " % (self.call("at", site), b" ".join(arms))

    def guard(self, site, live):
        guard = self.stretch(site.start, site.end, site.inner)
        values = b", ".join(text.encode() for _, text in site.mutants)
        arms = b" ".join(b"%d => %s," % (number - site.first + 1, text) for number, text in live.items())
        return b"(match %s { %s _ => %s::choose(%d, %s, [%s]) })" % (
            self.call("unmarked", site), arms, SWITCH.encode(), site.first, guard, values)

    def arm(self, site, _):
        return b" if %s == 0" % self.call("at", site)

    def guarded_arm(self, site, _):
        return b"%s == 0 && (%s)" % (self.call("at", site), self.stretch(site.start, site.end, site.inner))

    def field(self, site, live):
        base = next(child for child in site.node.parent.children if child.type == "base_field_initializer")
        name = site.node.children[0].text
        instead = b"(%s).%s" % (self.text[base.named_children[0].start_byte:base.end_byte], name)
        choice = self.choice(site, live, self.stretch(site.start, site.end, site.inner), dict.fromkeys(live, instead))
        return choice if site.node.type == "field_initializer" else b"%s: %s" % (name, choice)


def operands(node):
    """Left operand, operator and right operand."""
    return (node.child_by_field_name(name) for name in ("left", "operator", "right"))


def marked(text):
    """The marked stretches of a new text: start, end, whether only its mutant has it, and the mutants' numbers."""
    found, begun = [], []
    for mark in MARK.finditer(text):
        if mark[1]:
            begun.append((mark.start(), mark[1] == b"m", [int(number) for number in mark[2].split(b",")]))
        else:
            start, own, numbers = begun.pop()
            found.append((start, mark.end(), own, numbers))
    return found


def blamed(stretches, text, start, end):
    """The mutants to drop for an error there, and whether the error is in a text that only the mutant has."""
    around = [stretch for stretch in stretches if stretch[0] <= start and end <= stretch[1]]
    if around:
        _, _, own, numbers = min(around, key=lambda stretch: stretch[1] - stretch[0])
        return numbers, own
    node = parse(text).descendant_for_byte_range(start, end)
    while node:
        below = [stretch for stretch in stretches if node.start_byte <= stretch[0] and stretch[1] <= node.end_byte]
        if below or node.type == "function_item":
            return [number for stretch in below for number in stretch[3]], False
        node = node.parent
    return [], False
