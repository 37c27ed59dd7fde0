"""Random SELECTs over a few small tables and views, for asking two servers the same.

Every expression has a type and raises no error on any row (no division by what may be zero, no overflow, no subquery of
several rows), because in which order conditions are checked is a server's own choice. The query of a seed and a number is
always the same.

    names in scope ──▶ expression(type, depth) ──▶ FROM, WHERE, GROUP BY, WINDOW, select list ──▶ query

Queries have, beside joins, subqueries, aggregates and set operators:

    common table expressions   several, used more than once, [NOT] MATERIALIZED, at the top and in subqueries
    WITH RECURSIVE             UNION and UNION ALL
    GROUP BY                   columns, GROUPING SETS, ROLLUP, CUBE, DISTINCT, with GROUPING()
    ordered-set aggregates     percentile_disc, percentile_cont, and rank and dense_rank of a value not in the set
    window functions           of rows and of groups; ROWS, RANGE and GROUPS with offsets and EXCLUDE; named windows
    DISTINCT ON                with an order
    rows of two values         compared with rows and with subqueries, by operators, IN, ANY and ALL
    joins                      of each kind, by ON and USING, with LATERAL queries and functions, and by conditions of WHERE
    arrays                     of a query's rows, as texts and for ANY and ALL

An answer follows from the query:

1. Where there is a LIMIT, the order is over all output columns. An aggregate that depends on the order of its input has an
   ORDER BY inside.
2. A window function whose value depends on the order of equal rows (all over ROWS, row_number, lag, first_value and their
   like) orders its window over all columns of FROM, or over all grouping columns and GROUPING() of them. Rows that are
   equal in these are the same row to the query, but for the values of window functions. So all such windows of a SELECT
   have one order, since two would pair these values in any way, and DISTINCT ON orders over the output columns too.
3. A recursive query ends: it counts its depth, or is a UNION of values that tables hold.
"""

import random

TYPES = ("int", "big", "num", "text", "bool")

TABLES = {
    "item": [("id", "int"), ("kind", "int"), ("price", "num"), ("name", "text"), ("sold", "bool"), ("stock", "big")],
    "kind": [("id", "int"), ("title", "text"), ("parent", "int")],
    "sale": [("id", "int"), ("item", "int"), ("buyer", "text"), ("amount", "big"), ("paid", "num"), ("open", "bool")],
    "empty": [("id", "int"), ("name", "text"), ("amount", "big")],
}

VIEWS = {
    "stocked": (
        [("id", "int"), ("name", "text"), ("price", "num"), ("title", "text")],
        "select i.id, i.name, i.price, k.title from item i left join kind k on k.id = i.kind where i.sold is not false",
    ),
    "totals": (
        [("item", "int"), ("sales", "big"), ("paid", "num"), ("buyer", "text")],
        "select item, count(*), sum(paid), min(buyer) from sale group by item",
    ),
    "ranked": (
        [("item", "int"), ("amount", "big"), ("place", "big"), ("sales", "big")],
        "select s.item, s.amount, rank() over (partition by s.item order by s.amount desc nulls last), t.sales"
        " from sale s join totals t on t.item = s.item",
    ),
}

NAMES = {"int": "integer", "big": "bigint", "num": "numeric", "text": "text", "bool": "boolean"}

WORDS = ["", "a", "b", "ab", "abc", "A", "Ab", "ba", "x y", "zz", "%", "a_c", "12"]


def constant(draw, type_):
    """A constant of a type; sometimes NULL."""
    if draw.random() < 0.06:
        return f"null::{NAMES[type_]}"
    match type_:
        case "int":
            return str(draw.randrange(-3, 12))
        case "big":
            return f"{draw.choice((0, 1, 2, 5, 7, 40, 5000000000))}::bigint"
        case "num":
            return draw.choice(("0.0", "1.5", "2.25", "-1.0", "10.00", "3.333"))
        case "text":
            return "'" + draw.choice(WORDS).replace("'", "''") + "'::text"
        case "bool":
            return draw.choice(("true", "false"))


def setup(seed):
    """The statements that make the tables, fill them, and make the views."""
    draw = random.Random(f"tables {seed}")
    for table, columns in TABLES.items():
        key = {"item": " primary key", "kind": " primary key", "sale": "", "empty": ""}[table]
        yield f"create table {table} (" + ", ".join(
            f"{name} {NAMES[type_]}{key if name == 'id' else ''}" for name, type_ in columns
        ) + ")"
        rows = []
        for number in range({"item": 23, "kind": 6, "sale": 31, "empty": 0}[table]):
            values = [
                str(number if key else draw.randrange(8)) if name == "id" else constant(draw, type_) for name, type_ in columns
            ]
            rows.append("(" + ", ".join(values) + ")")
        if rows:
            yield f"insert into {table} values " + ", ".join(rows)
    yield "create index on sale (item)"
    yield "create index on sale (amount, buyer)"
    yield "create unique index on item (name, id)"
    for view, (columns, text) in VIEWS.items():
        yield f"create view {view} ({', '.join(name for name, _ in columns)}) as {text}"


class Windows:
    """The windows of one SELECT.

    `rows`: the columns that tell its rows apart; `scope`: what its window functions may read; `around`: the columns of the
    queries around it; `depth`: of their expressions.
    """

    def __init__(self, rows, scope, around, depth):
        self.rows, self.scope, self.around, self.depth = rows, scope, around, depth
        self.named = []  # (name, definition)
        self.whole = []  # (name, whether it is total), of the named ones that have their order and frame
        self.total = None  # what the total ones have before their frames, and the types that they are ordered by

    def clause(self):
        """The WINDOW clause."""
        return " window " + ", ".join(f"{name} as ({text})" for name, text in self.named) if self.named else ""


class Query:
    """The makings of one query."""

    def __init__(self, seed, number):
        self.draw = random.Random(f"query {seed} {number}")
        self.names = 0
        self.common = []

    def chance(self, share):
        return self.draw.random() < share

    def new_name(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    # Expressions. A scope is a list of (text, type): the columns in reach.

    def expression(self, type_, scope, depth):
        columns = [text for text, found in scope if found == type_]
        if depth <= 0 or self.chance(0.35):
            if columns and self.chance(0.85):
                return self.draw.choice(columns)
            return constant(self.draw, type_)
        if self.chance(0.12):
            return self.case(type_, scope, depth)
        if self.chance(0.08):
            return f"coalesce({self.expression(type_, scope, depth - 1)}, {self.expression(type_, scope, depth - 1)})"
        if self.chance(0.05):
            return f"nullif({self.expression(type_, scope, depth - 1)}, {self.expression(type_, scope, depth - 1)})"
        if depth > 1 and self.chance(0.08):
            return self.scalar_query(type_, scope, depth - 2)
        return getattr(self, type_)(scope, depth - 1)

    def case(self, type_, scope, depth):
        arms = "".join(
            f" when {self.expression('bool', scope, depth - 1)} then {self.expression(type_, scope, depth - 1)}"
            for _ in range(self.draw.randrange(1, 3))
        )
        other = f" else {self.expression(type_, scope, depth - 1)}" if self.chance(0.7) else ""
        return f"case{arms}{other} end"

    def int(self, scope, depth):
        a, b = (self.expression("int", scope, depth) for _ in range(2))
        text = self.expression("text", scope, depth)
        # Kept small: nothing that is made of it overflows.
        return self.draw.choice((
            f"({a} + {b}) % 1000", f"({a} - {b}) % 1000", f"(({a}) % 100) * (({b}) % 100)", f"abs({a})",
            f"length({text})", f"({a}) / nullif({b}, 0)", f"greatest({a}, {b})", f"strpos({text}, 'a')", f"(- ({a}))",
        ))

    def big(self, scope, depth):
        a = self.expression("big", scope, depth)
        b = self.expression("int", scope, depth)
        return self.draw.choice((f"({a} + {b}) % 10000000000", f"{a} - ({b})", f"({b})::bigint", f"least({a}, {b})", f"abs({a})"))

    def num(self, scope, depth):
        a = self.expression("num", scope, depth)
        b = self.expression(self.draw.choice(("num", "int")), scope, depth)
        return self.draw.choice((
            f"({a} + {b})", f"({a} - {b})", f"round({a}, 1)", f"({b})::numeric", f"abs({a})", f"(({a}) % 1000) * 0.5",
            f"trunc({a} / nullif({b}, 0), 3)",
        ))

    def text(self, scope, depth):
        a, b = (self.expression("text", scope, depth) for _ in range(2))
        number = self.expression("int", scope, depth)
        return self.draw.choice((
            f"left({a} || {b}, 12)", f"upper({a})", f"lower({a})", f"substr({a}, 2)", f"({number})::text", f"replace({a}, 'a', 'c')",
            f"trim({a})", f"concat({a}, {number})", f"md5({a})",
        ))

    def bool(self, scope, depth):
        if depth > 0 and self.chance(0.2):
            return self.predicate_query(scope, depth - 1)
        type_ = self.draw.choice(TYPES)
        a, b = (self.expression(type_, scope, depth) for _ in range(2))
        text = self.expression("text", scope, depth)
        p, q = (self.expression("bool", scope, depth) for _ in range(2))
        if self.chance(0.06):
            return self.rows_compared(type_, a, b, scope)
        compare = self.draw.choice(("=", "=", "<>", "<", "<=", ">", ">="))
        return self.draw.choice((
            f"({a}) {compare} ({b})", f"({a}) {compare} ({b})", f"({p} and {q})", f"({p} or {q})", f"not ({p})",
            f"({a}) is null", f"({a}) is not null", f"({a}) is distinct from ({b})", f"({a}) is not distinct from ({b})",
            f"({a}) in ({b}, {self.expression(type_, scope, 0)}, {self.expression(type_, scope, 0)})",
            f"({a}) not in ({b}, {self.expression(type_, scope, 0)})",
            f"({a}) between ({b}) and ({self.expression(type_, scope, depth)})",
            f"({text}) like {self.draw.choice(WORDS)!r} || '%'", f"({text}) ~ '^[a-c]+$'", f"({p}) is not true", f"({p}) is unknown",
        ))

    def rows_compared(self, type_, a, b, scope):
        """A comparison of rows of two values, the first of which are a and b."""
        other = self.draw.choice(TYPES)
        x, y, z = (self.expression(other, scope, 0) for _ in range(3))
        compare = self.draw.choice(("=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"))
        return self.draw.choice((
            f"({a}, {x}) {compare} ({b}, {y})", f"({x}, {a}) {compare} ({y}, {b})",
            f"({a}, {x}) {self.draw.choice(('', 'not '))}in (({b}, {y}), ({self.expression(type_, scope, 0)}, {z}))",
        ))

    # Window functions.

    def window_call(self, type_, windows):
        """A call of a window function that gives this type."""
        def value(of):
            return self.expression(of, windows.scope, windows.depth)

        least = self.draw.choice(("min", "max"))
        inside = value(type_)
        # Of each: the call, whether it needs a total order, and whether it is an aggregate.
        calls = [
            (f"{self.draw.choice(('first_value', 'last_value'))}({inside})", True, False),
            (f"nth_value({inside}, {self.draw.randrange(1, 4)})", True, False),
            (f"{self.draw.choice(('lag', 'lead'))}({inside}{self.shift(type_, windows)})", True, False),
            (f"{self.draw.choice(('lag', 'lead'))}({inside}{self.shift(type_, windows)})", True, False),
        ]
        match type_:
            case "int":
                calls += [(f"ntile({self.draw.randrange(1, 5)})", True, False), (f"{least}({inside})", False, True)]
            case "big":
                calls += [
                    ("row_number()", True, False), ("rank()", False, False), ("dense_rank()", False, False),
                    ("count(*)", False, True), (f"count({value('text')})", False, True), (f"sum({value('int')})", False, True),
                    (f"{least}({inside})", False, True),
                ]
            case "num":
                calls += [
                    (f"sum({inside})", False, True), (f"sum({value('big')})", False, True), (f"avg({value('int')})", False, True),
                    (f"{least}({inside})", False, True), ("cume_dist()", False, False), ("percent_rank()", False, False),
                ]
            case "text":
                calls += [(f"{least}({inside})", False, True), (f"string_agg({inside}, ',')", True, True)]
            case "bool":
                calls += [(f"{self.draw.choice(('bool_and', 'bool_or'))}({inside})", False, True)] * 2
        call, total, aggregate = self.draw.choice(calls)
        # A FILTER may not have an aggregate, which is what the windows of groups have in their scope at depth 0.
        if aggregate and windows.depth > 0 and self.chance(0.15):
            call += f" filter (where {value('bool')})"
        call += f" over {self.over(total, windows)}"
        return f"round(({call})::numeric, 4)" if call.startswith(("cume_dist", "percent_rank")) else call

    def shift(self, type_, windows):
        """The further arguments of lag or lead."""
        if self.chance(0.4):
            return ""
        by = self.draw.choice((0, 1, 1, 2, 3, -1)) if self.chance(0.8) else self.expression("int", windows.scope, 0)
        return f", {by}" + (f", {constant(self.draw, type_)}" if self.chance(0.4) else "")

    def over(self, total, windows):
        """What follows OVER: a window, which is total if that is asked."""
        known = [name for name, is_total in windows.whole if is_total or not total]
        if known and self.chance(0.4):
            return self.draw.choice(known)
        total = total or self.chance(0.3)
        parts, types = windows.total if total and windows.total else self.partition_and_order(total, windows)
        if total:
            windows.total = parts, types
        if self.chance(0.65):
            parts = [*parts, self.frame(types, total, windows)]
        text = " ".join(part for part in parts if part)
        if self.chance(0.25):
            name = self.name_window(text, windows)
            windows.whole.append((name, total))
            return name
        return f"({text})"

    def partition_and_order(self, total, windows):
        """The parts of a window before its frame, and the types that it is ordered by."""
        parts = []
        if self.chance(0.55):
            keys = [self.window_key(windows)[0] for _ in range(self.draw.choice((1, 1, 2)))]
            parts.append("partition by " + ", ".join(keys))
        if self.chance(0.2):
            parts = [self.name_window(" ".join(parts), windows)]
        keys = [self.window_key(windows) for _ in range(self.draw.choice((0, 0, 1) if total else (0, 1, 1, 1, 2)))]
        if total:
            keys += self.draw.sample(windows.rows, len(windows.rows))
        if keys:
            parts.append("order by " + ", ".join(text + self.direction() for text, _ in keys))
        return parts, [type_ for _, type_ in keys]

    def name_window(self, text, windows):
        name = self.new_name("v")
        windows.named.append((name, text))
        return name

    def window_key(self, windows):
        """An expression to partition or order by, and its type: most times a column."""
        if self.chance(0.7):
            return self.draw.choice(windows.rows)
        type_ = self.draw.choice(TYPES)
        return self.expression(type_, windows.scope, min(windows.depth, 1)), type_

    def direction(self):
        return self.draw.choice(("", "", " desc", " nulls first", " desc nulls last"))

    def frame(self, order, total, windows):
        """A frame of a window that is ordered by these types."""
        modes = ["range"] + ["rows"] * 2 * total + ["groups"] * bool(order)
        if len(order) == 1 and order[0] in ("int", "big", "num"):
            modes += ["range offset"] * 3
        mode = self.draw.choice(modes)
        whole = mode == "range"

        def offset():
            if mode == "range offset":
                return self.draw.choice(("0.5", "1.5", "3") if order[0] == "num" else ("0", "1", "2", "5"))
            outer = [text for text, type_ in windows.around if type_ == "int"]
            if outer and self.chance(0.3):
                return f"coalesce(abs({self.draw.choice(outer)}) % 4, 1)"
            return str(self.draw.randrange(4))

        def bound(place):
            match place:
                case 1:
                    return f"{offset()} preceding"
                case 2:
                    return "current row"
                case 3:
                    return f"{offset()} following"
            return f"unbounded {'following' if place else 'preceding'}"

        places = (0, 2, 4) if whole else range(5)
        start = self.draw.choice([place for place in places if place < 4])
        end = self.draw.choice([place for place in places if place >= max(start, 1)])
        if start <= 2 and self.chance(0.2):
            text = bound(start)
        else:
            text = f"between {bound(start)} and {bound(end)}"
        # PostgreSQL 15's value functions lose rows of a frame that leaves out the ties of a current row outside of it.
        ties = " exclude ties" if start <= 2 <= end else ""
        exclude = self.draw.choice(("", "", "", " exclude current row", " exclude group", ties, " exclude no others"))
        return f"{mode.split()[0]} {text}{exclude}"

    # Queries in expressions.

    def scalar_query(self, type_, scope, depth):
        source, inside = self.source(scope, depth)
        inner = inside + scope
        if type_ == "text" and self.chance(0.3):
            of = self.draw.choice(("int", "text", "big"))
            rows = f"select {self.expression(of, inner, depth)} from {source}{self.where(inner, depth)}"
            return f"left(array_to_string(array({rows} order by 1), ',', '-'), 40)"
        kind = self.draw.randrange(3)
        if kind == 0:
            return f"(select {self.aggregate_of(type_, inside, depth)} from {source}{self.where(inner, depth)})"
        if kind == 1:
            value = self.expression(type_, inner, depth)
            return f"(select {value} as v from {source}{self.where(inner, depth)} order by 1 limit 1)"
        one = "bool_or" if type_ == "bool" else self.draw.choice(("min", "max"))
        return f"(select {one}({self.expression(type_, inside, depth)}) from {source}{self.where(inner, depth)})"

    def predicate_query(self, scope, depth):
        source, inside = self.source(scope, depth)
        inner = inside + scope
        where = self.where(inner, depth)
        if self.chance(0.2):
            return self.row_predicate(scope, inner, f"{source}{where}", depth)
        if self.chance(0.4):
            return f"{self.draw.choice(('', 'not '))}exists (select 1 from {source}{where})"
        type_ = self.draw.choice(("int", "text", "big"))
        left, right = self.expression(type_, scope, depth), self.expression(type_, inner, depth)
        if self.chance(0.6):
            return f"({left}) {self.draw.choice(('', 'not '))}in (select {right} from {source}{where})"
        operator, which = self.draw.choice(("=", "<>", "<", ">=")), self.draw.choice(("any", "all"))
        if self.chance(0.2):
            return f"({left}) {operator} {which} (array(select {right} from {source}{where}))"
        return f"({left}) {operator} {which} (select {right} from {source}{where})"

    def row_predicate(self, scope, inner, rest, depth):
        """A comparison of two values with the rows of a subquery; `rest`: what follows its FROM."""
        types = self.draw.choices(TYPES, k=2)
        left = ", ".join(self.expression(type_, scope, depth) for type_ in types)
        right = ", ".join(self.expression(type_, inner, depth) for type_ in types)
        operator = self.draw.choice(("=", "<>", "<", "<=", ">", ">="))
        if self.chance(0.5):
            return f"({left}) {self.draw.choice(('', 'not '))}in (select {right} from {rest})"
        if self.chance(0.5):
            return f"({left}) {operator} {self.draw.choice(('any', 'all'))} (select {right} from {rest})"
        return f"({left}) {operator} (select {right} from {rest} order by 1, 2 limit 1)"

    # FROM.

    def where(self, scope, depth):
        if self.chance(0.3):
            return ""
        parts = [self.expression("bool", scope, max(depth, 1)) for _ in range(self.draw.choice((1, 1, 1, 2, 3)))]
        if self.chance(0.3):
            parts += [equal for equal in [self.equality(scope, scope)] if equal]
        return f" where {' and '.join(parts)}"

    def equality(self, some, others):
        """A column of one scope equal to a column of the other, of another relation; None if there are no two of one type."""
        pairs = [
            (a, b) for a, x in some for b, y in others
            if x == y and x != "bool" and "." in a and "." in b and a.split(".")[0] != b.split(".")[0]
        ]
        return " = ".join(self.draw.choice(pairs)) if pairs else None

    def leaf(self, beside, depth):
        """A relation and its columns; `beside`: the columns to its left that it may read by LATERAL."""
        alias = self.new_name("r")
        if self.common and self.chance(0.45):
            name, columns = self.draw.choice(self.common)
            return f"{name} {alias}", [(f"{alias}.{column}", type_) for column, type_ in columns]
        pick = self.draw.random()
        if depth > 0 and pick < 0.15:
            text, types = self.nested(beside, depth - 1)
            lateral = "lateral " if beside else ""
            columns = [f"c{number}" for number in range(len(types))]
            return f"{lateral}({text}) {alias} ({', '.join(columns)})", [
                (f"{alias}.{column}", type_) for column, type_ in zip(columns, types)
            ]
        if pick < 0.22:
            rows = ", ".join(
                f"({constant(self.draw, 'int')}, {constant(self.draw, 'text')})" for _ in range(self.draw.randrange(1, 4))
            )
            return f"(values {rows}) {alias} (n, t)", [(f"{alias}.n", "int"), (f"{alias}.t", "text")]
        if pick < 0.27:
            return self.function(alias, beside)
        if pick < 0.37:
            view = self.draw.choice(tuple(VIEWS))
            return f"{view} {alias}", [(f"{alias}.{column}", type_) for column, type_ in VIEWS[view][0]]
        table = self.draw.choice(("item", "item", "kind", "sale", "sale", "empty"))
        return f"{table} {alias}", [(f"{alias}.{column}", type_) for column, type_ in TABLES[table]]

    def function(self, alias, beside):
        """A function of FROM and its columns; it reads the columns to its left, if it may."""
        whole = [text for text, type_ in beside or [] if type_ == "int"]
        count = f"abs({self.draw.choice(whole)}) % 4" if whole and self.chance(0.7) else str(self.draw.randrange(5))
        if self.chance(0.5):
            return f"generate_series(0, {count}) {alias} (n)", [(f"{alias}.n", "int")]
        words = ", ".join(self.expression("text", beside or [], 0) for _ in range(self.draw.randrange(1, 4)))
        return (
            f"unnest(array[{words}]) with ordinality {alias} (t, at)", [(f"{alias}.t", "text"), (f"{alias}.at", "big")]
        )

    def source(self, scope, depth):
        """FROM's text and its columns; `scope`: the columns of the queries around it."""
        text, columns = self.leaf(None, depth)
        # JOIN binds more tightly than a comma: ON sees what stands after the last of them.
        joined = columns
        for _ in range(self.draw.choice((0, 0, 1, 1, 2, 3) if depth > 0 else (0, 0, 1))):
            kind = self.draw.choice(("join", "join", "left join", "right join", "full join", "cross join", ","))
            within = joined if kind in ("join", "left join", "cross join") else columns if kind == "," else None
            right, more = self.leaf(within if self.chance(0.3) else None, depth - 1)
            if kind == ",":
                text, joined = f"{text}, {right}", more
            elif kind == "cross join":
                text, joined = f"{text} {kind} {right}", joined + more
            elif self.chance(0.15) and (shared := self.shared_columns(joined, more)):
                some = self.draw.sample(shared, min(len(shared), self.draw.choice((1, 1, 2))))
                text, joined = f"{text} {kind} {right} using ({', '.join(some)})", joined + more
            else:
                text, joined = f"{text} {kind} {right} on {self.condition(joined, more, kind, depth)}", joined + more
            columns = columns + more
        return text, columns

    def shared_columns(self, left, right):
        """The names of columns that each side has once, with one type."""
        def by_name(columns):
            names = [text.split(".")[1] for text, _ in columns]
            return {name: type_ for name, (_, type_) in zip(names, columns) if names.count(name) == 1 and type_ != "bool"}

        left, right = by_name(left), by_name(right)
        return [name for name, type_ in left.items() if right.get(name) == type_]

    def condition(self, left, right, kind, depth):
        """ON: an equality of both sides, most of the time."""
        pairs = [(a, b) for a, x in left for b, y in right if x == y and x != "bool"]
        if pairs and (kind == "full join" or self.chance(0.85)):
            a, b = self.draw.choice(pairs)
            equal = f"{a} = {b}"
            if kind == "full join" or self.chance(0.6):
                return equal
            return f"{equal} and {self.expression('bool', left + right, 1)}"
        if kind == "full join":
            return "true"
        return self.expression("bool", left + right, min(depth, 2))

    # SELECT.

    def aggregate_of(self, type_, scope, depth):
        """A call of an aggregate that gives this type. One over outer columns alone would be the outer query's."""
        def value(of):
            return self.expression(of, scope, max(depth - 1, 0))

        if self.chance(0.12):
            return self.ordered_set(type_, value)
        match type_:
            case "int":
                call = f"{self.draw.choice(('min', 'max'))}({value('int')})"
            case "big":
                call = self.draw.choice(("count(*)", f"count({value('text')})", f"sum({value('int')})", f"count(distinct {value('int')})"))
            case "num":
                call = self.draw.choice((f"sum({value('num')})", f"avg({value('int')})", f"sum({value('big')})", f"max({value('num')})"))
            case "text":
                inside = value("text")
                call = self.draw.choice((f"min({inside})", f"max({inside})", f"string_agg({inside}, ',' order by {inside})"))
            case "bool":
                call = f"{self.draw.choice(('bool_and', 'bool_or'))}({value('bool')})"
        if self.chance(0.15):
            call += f" filter (where {value('bool')})"
        return call

    def ordered_set(self, type_, value):
        """A call of an ordered-set aggregate that gives this type; value(type) makes its argument."""
        share = self.draw.choice((0, 0.1, 0.25, 0.5, 0.75, 1))
        order = self.draw.choice(("", " desc"))
        if type_ == "big" and self.chance(0.6):
            of = self.draw.choice(("int", "text", "num"))
            rank = self.draw.choice(("rank", "dense_rank"))
            return f"{rank}({constant(self.draw, of)}) within group (order by {value(of)}{self.direction()})"
        if type_ == "num" and self.chance(0.4):
            return f"round((percentile_cont({share}) within group (order by ({value('int')})::float8{order}))::numeric, 4)"
        return f"percentile_disc({share}) within group (order by {value(type_)}{order})"

    def grouping_key(self, key, columns):
        """A column to group by, or sometimes an expression over it."""
        text, type_ = key
        if self.chance(0.8):
            return key
        match type_:
            case "int":
                return f"({text} % 3)", type_
            case "big" | "num":
                return f"({text} + {self.draw.choice([one for one, of in columns if of == 'int'] or ['1'])})", type_
            case "text":
                return f"left({text}, 1)", type_
            case "bool":
                return f"({text} is true)", type_

    def grouping(self, keys):
        """What follows GROUP BY, and whether it may be more than one grouping set."""
        plain = ", ".join(keys)
        if self.chance(0.6):
            return plain, False
        some = [", ".join(self.draw.sample(keys, self.draw.randrange(len(keys) + 1))) for _ in range(self.draw.randrange(3))]
        return self.draw.choice((
            f"rollup ({plain})", f"cube ({plain})", f"{keys[0]}, rollup ({plain})", f"distinct rollup ({plain}), cube ({keys[-1]})",
            f"grouping sets (({plain}){''.join(f', ({one})' for one in some)})",
            f"grouping sets (rollup ({plain}), ({keys[-1]}), ())", f"{keys[0]}, grouping sets (({plain}), ())",
        )), True

    def select(self, outer, depth, types=None):
        """A query and the types of its columns; `outer`: columns of the query around it."""
        if depth > 0 and types is None and self.chance(0.1):
            return self.set_operation(outer, depth)
        source, columns = self.source(outer, depth)
        scope = columns + (outer or [])
        types = types or [self.draw.choice(TYPES) for _ in range(self.draw.randrange(1, 4))]
        where = self.where(scope, depth)
        if self.chance(0.33):
            outputs, tail = self.grouped(types, columns, outer or [], depth)
            plain = False
        else:
            windows = Windows(columns, scope, outer or [], depth - 1)
            outputs = self.outputs(types, scope, depth, windows if self.chance(0.25) else None)
            tail = windows.clause()
            plain = True
        listed = ", ".join(f"{text} as o{number}" for number, text in enumerate(outputs))
        if plain and self.chance(0.08):
            keys, order = self.distinct_on(columns, len(outputs))
            return f"select distinct on ({keys}) {listed} from {source}{where}{tail}{order}", types
        distinct = "distinct " if plain and self.chance(0.12) else ""
        return f"select {distinct}{listed} from {source}{where}{tail}{self.order(len(outputs))}", types

    def outputs(self, types, scope, depth, windows):
        """The select list, with window functions if there are windows."""
        outputs = []
        for type_ in types:
            if windows is None or self.chance(0.25):
                outputs.append(self.expression(type_, scope, depth))
            elif self.chance(0.7):
                outputs.append(self.window_call(type_, windows))
            else:
                # Not in a subquery, hence no deeper than 1.
                calls = [(self.window_call(of, windows), of) for of in (type_, self.draw.choice(TYPES))]
                outputs.append(getattr(self, type_)(calls, 0))
        return outputs

    def grouped(self, types, columns, outer, depth):
        """The select list of a query with aggregates, and its GROUP BY, HAVING and WINDOW."""
        keys = self.draw.sample(columns, min(len(columns), self.draw.choice((0, 0, 1, 1, 2, 2, 3))))
        keys = [self.grouping_key(key, columns) for key in keys]
        names = [text for text, _ in keys]
        tail, free, rows = "", keys + outer, keys
        has_windows = bool(keys) and self.chance(0.2)
        if keys:
            # PostgreSQL 15 takes columns that WHERE says are equal for equal in every grouping set, and orders by one alone.
            text, several = (", ".join(names), False) if has_windows and len(keys) > 1 else self.grouping(names)
            tail = f" group by {text}"
            if several:
                rows = keys + [(f"grouping ({', '.join(names)})", "int")]
                free = rows + outer
        if self.chance(0.3):
            tail += f" having {self.aggregate_of('big', columns, depth)} > {self.draw.randrange(3)}"
        windows = None
        if has_windows:
            made = [(self.aggregate_of(type_, columns, 1), type_) for type_ in self.draw.choices(TYPES, k=2)]
            windows = Windows(rows, free + made, outer, 0)
        outputs = []
        for type_ in types:
            if windows and self.chance(0.7):
                outputs.append(self.window_call(type_, windows))
            elif not keys or self.chance(0.6):
                outputs.append(self.aggregate_of(type_, columns, depth))
            else:
                outputs.append(self.expression(type_, free, 1))
        return outputs, tail + (windows.clause() if windows else "")

    def distinct_on(self, columns, width):
        """What DISTINCT ON keeps one row of, and the total ORDER BY that says which, with so many output columns."""
        order = self.draw.sample(columns, len(columns))
        keys = [text for text, _ in order[: self.draw.randrange(1, 3)]]
        order = [text for text, _ in order] + [str(number) for number in range(1, width + 1)]
        text = " order by " + ", ".join(text + self.direction() for text in order)
        if self.chance(0.3):
            text += f" limit {self.draw.choice((0, 1, 3, 10))}"
        return ", ".join(self.draw.sample(keys, len(keys))), text

    def order(self, width):
        """An order over all columns, and how much of it."""
        if self.chance(0.75):
            return ""
        columns = self.draw.sample(range(1, width + 1), width)
        keys = ", ".join(f"{c}{self.draw.choice(('', ' desc', ' nulls first', ' desc nulls last'))}" for c in columns)
        text = f" order by {keys}"
        if self.chance(0.7):
            text += f" limit {self.draw.choice((0, 1, 3, 10))}"
        if self.chance(0.3):
            text += f" offset {self.draw.randrange(4)}"
        return text

    def set_operation(self, outer, depth):
        left, types = self.nested(outer, depth - 1)
        right, _ = self.nested(outer, depth - 1, types)
        text = f"({left}) {self.set_operator()} ({right})"
        for _ in range(self.draw.choice((0, 0, 0, 1, 2))):
            more, _ = self.nested(outer, depth - 2, types)
            text = f"{text} {self.set_operator()} ({more})"
        return f"{text}{self.order(len(types))}", types

    def set_operator(self):
        return self.draw.choice(("union", "union all", "intersect", "intersect all", "except", "except all"))

    # WITH.

    def nested(self, outer, depth, types=None):
        """A query that stands in parentheses, hence may have a WITH of its own, and the types of its columns."""
        if self.chance(0.9):
            return self.select(outer, depth, types)
        count = len(self.common)
        text = self.with_clause(outer, self.draw.choice((1, 1, 2)), depth - 1)
        query, types = self.select(outer, depth, types)
        del self.common[count:]
        return text + query, types

    def with_clause(self, outer, count, depth):
        """A WITH of so many common table expressions, which the queries after it may read."""
        parts = []
        recursive = False
        for _ in range(count):
            name = self.new_name("w")
            if self.chance(0.3):
                text, types = self.recursive(name, outer, depth)
                recursive = True
            else:
                text, types = self.select(outer, depth)
            columns = [(f"c{number}", type_) for number, type_ in enumerate(types)]
            kept = self.draw.choice(("", "", "materialized ", "not materialized "))
            parts.append(f"{name} ({', '.join(column for column, _ in columns)}) as {kept}({text})")
            self.common.append((name, columns))
        return f"with {'recursive ' if recursive else ''}{', '.join(parts)} "

    def recursive(self, name, outer, depth):
        """A recursive query of this name, and the types of its columns."""
        if self.chance(0.25):
            return self.closure(name, outer or []), ["int"]
        outer = outer or []
        more = self.draw.choices(TYPES, k=self.draw.randrange(1, 3))
        types = ["int", *more]
        alias = self.new_name("r")
        own = [(f"{alias}.c{number}", type_) for number, type_ in enumerate(types)]

        source, columns = self.source(outer or None, 0)
        first = [self.expression(type_, columns + outer, 1) for type_ in more]
        first = f"select 0, {', '.join(first)} from {source}{self.where(columns + outer, depth)}"

        source, scope = f"{name} {alias}", own
        if self.chance(0.5):
            # On an equality: else the rows would be multiplied at each depth.
            table = self.draw.choice(("item", "kind", "sale"))
            joined = self.new_name("r")
            columns = [(f"{joined}.{column}", type_) for column, type_ in TABLES[table]]
            value = self.draw.choice([text for text, type_ in own if type_ == "int"])
            key = self.draw.choice([text for text, type_ in columns if type_ == "int"])
            source = f"{source} {self.draw.choice(('join', 'left join'))} {table} {joined} on {key} = {value}"
            scope = own + columns
        windows = Windows(scope, scope + outer, outer, 0)
        then = self.outputs(more, scope + outer, 1, windows if self.chance(0.1) else None)
        deep = f" where {own[0][0]} < {self.draw.randrange(1, 5)}"
        if self.chance(0.5):
            deep += f" and {self.expression('bool', scope + outer, max(depth, 1))}"
        then = f"select {own[0][0]} + 1, {', '.join(then)} from {source}{deep}{windows.clause()}"
        return f"{first} {self.draw.choice(('union', 'union all'))} {then}", types

    def closure(self, name, outer):
        """The values that are reached from some by a table's pairs of columns, in a UNION."""
        table, key, value = self.draw.choice((
            ("kind", "id", "parent"), ("kind", "parent", "id"), ("item", "id", "kind"), ("item", "kind", "id"), ("sale", "id", "item"),
        ))
        first = f"select {self.expression('int', outer, 1)}"
        if self.chance(0.5):
            first = f"select {value} from {table} where {key} = {constant(self.draw, 'int')}"
        then = self.draw.choice((
            f"select y.{value} from {name} x join {table} y on y.{key} = x.c0",
            f"select y.{value} from {table} y, {name} x where y.{key} = x.c0",
            f"select distinct y.{value} from {table} y join {name} x on y.{key} between x.c0 and x.c0 + 1",
        ))
        return f"{first} union {then}"

    def whole(self):
        """A query with its common table expressions."""
        count = self.draw.choice((0, 0, 0, 1, 2))
        text = self.with_clause(None, count, 1) if count else ""
        query, _ = self.select(None, self.draw.choice((1, 2, 2, 3)))
        return text + query


def query(seed, number):
    """The query of this seed and number."""
    return Query(seed, number).whole()
