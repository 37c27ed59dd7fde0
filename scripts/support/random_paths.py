"""Random documents and paths of SQL/JSON that go together: few keys and few values, so that most paths find something."""

KEYS = ["a", "b", "c", "a b", "ä"]
SCALARS = [
    "null", "true", "false", "0", "1", "-1", "2", "3.50", "-0.5", "1e3", "9007199254740993", "12345678901234567890.5", '""',
    '"a"', '"ab"', '"abc"', '"1"', '"2.5"', '" 7 "', '"x\\ny"', '"AB"', '"2020-01-02"', '"2020-01-02 03:04:05"',
    '"2020-01-02T03:04:05.5+02"', '"03:04:05"', '"03:04:05-01:30"', '"2019-12-31"', '"ü\\u0001"', '"a.c"',
]
COMPARISONS = ["==", "!=", "<>", "<", "<=", ">", ">="]
PATTERNS = ["a", "^a.c$", "B", "b$", "[0-9]+", "x.y", "", "a|x"]
FLAGS = ["", ' flag "i"', ' flag "s"', ' flag "m"', ' flag "q"', ' flag "iq"']
METHODS = ["type()", "size()", "double()", "abs()", "ceiling()", "floor()", "keyvalue()", "datetime()"]
TEMPLATES = ["yyyy-mm-dd", "HH24:MI:SS", "yyyy-mm-dd HH24:MI:SS", "yyyy", "dd", "HH24:MI:SSTZH:TZM", 'yyyy-mm-dd\\"T\\"HH24:MI:SS.USTZH']
VARIABLES = '{"x": 1, "y": "a", "z": [1, "ab", null], "o": {"a": 2, "b": {"c": 3}}}'


def document(draw, depth=0):
    """The text of a random document."""
    sort = draw.random()
    if depth > 3 or sort < (0.15 if depth == 0 else 0.5):
        return draw.choice(SCALARS)
    parts = [document(draw, depth + 1) for _ in range(draw.randrange(4))]
    if sort < 0.75:
        return f"[{', '.join(parts)}]"
    return "{" + ", ".join(f'"{key}": {part}' for key, part in zip(draw.sample(KEYS, len(parts)), parts)) + "}"


def path(draw):
    """The text of a random path."""
    mode = draw.choice(["", "", "lax ", "strict "])
    whole = predicate(draw, 0, False) if draw.random() < 0.15 else items(draw, 0, False)
    return mode + whole


def items(draw, depth, in_filter):
    """An expression for items."""
    sort = draw.random()
    if depth > 2 or sort < 0.75:
        return chain(draw, depth, in_filter)
    if sort < 0.9:
        left, right = items(draw, depth + 1, in_filter), items(draw, depth + 1, in_filter)
        return f"{left} {draw.choice('+-*/%')} {right}"
    if sort < 0.95:
        return draw.choice("+-") + chain(draw, depth, in_filter)
    return f"({items(draw, depth + 1, in_filter)})" + accessor(draw, depth, in_filter)


def chain(draw, depth, in_filter):
    sort = draw.random()
    if in_filter and sort < 0.6:
        first = "@"
    elif sort < 0.8 or depth == 0:
        first = "$"
    elif sort < 0.9:
        first = draw.choice(["1", "2.5", '"a"', "null", "true", '"2020-01-02"', "0"])
        if draw.random() < 0.7:
            return first
        first = f"({first})"
    else:
        # The last one is missing.
        first = "$" + draw.choice("xyzom")
    return first + "".join(accessor(draw, depth, in_filter) for _ in range(draw.choice([0, 1, 1, 2, 2, 3])))


def accessor(draw, depth, in_filter):
    sort = draw.random()
    if sort < 0.3:
        return "." + draw.choice(["a", "b", "c", '"a b"', "ä"])
    if sort < 0.38:
        return ".*"
    if sort < 0.5:
        return "[*]"
    if sort < 0.62:
        return f"[{', '.join(subscript(draw, depth, in_filter) for _ in range(draw.choice([1, 1, 2])))}]"
    if sort < 0.7:
        level = [str(draw.randrange(4)), "last"]
        return ".**" + draw.choice(["", f"{{{draw.choice(level)}}}", f"{{{draw.choice(level)} to {draw.choice(level)}}}"])
    if sort < 0.82:
        template = f'"{draw.choice(TEMPLATES)}"'
        return "." + draw.choice([*METHODS, *METHODS, f"datetime({template})"])
    if depth > 2:
        return ".a"
    return f" ? ({predicate(draw, depth + 1, True)})"


def subscript(draw, depth, in_filter):
    simple = ["0", "0", "1", "2", "last", "last", "last - 1", "0.9", "$.a", "-1", "$x"]
    # `last` behind a subscript is that subscript's array's.
    nested = ["$[0] ? (@ < last)", "$[last][0] ? (last == 1)", "$.a[1] ? (@ <= last)", "$.b[last]"]
    one = lambda: draw.choice(nested if draw.random() < 0.15 else simple)
    return one() if draw.random() < 0.7 else f"{one()} to {one()}"


def predicate(draw, depth, in_filter):
    """A predicate."""
    sort = draw.random()
    if depth < 3 and sort < 0.12:
        return f"{predicate(draw, depth + 1, in_filter)} {draw.choice(['&&', '||'])} {predicate(draw, depth + 1, in_filter)}"
    if depth < 3 and sort < 0.18:
        return f"!({predicate(draw, depth + 1, in_filter)})"
    if depth < 3 and sort < 0.24:
        return f"({predicate(draw, depth + 1, in_filter)}) is unknown"
    if sort < 0.35:
        return f"exists({items(draw, depth + 1, in_filter)})"
    left = items(draw, depth + 1, in_filter)
    if sort < 0.43:
        initial = draw.choice(['"a"', '"ab"', "$y", '""', "$z"])
        return f"{left} starts with {initial}"
    if sort < 0.52:
        return f'{left} like_regex "{draw.choice(PATTERNS)}"{draw.choice(FLAGS)}'
    return f"{left} {draw.choice(COMPARISONS)} {items(draw, depth + 1, in_filter)}"
