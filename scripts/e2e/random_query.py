"""Random SELECTs over a few small tables, for asking two servers the same.

Every expression has a type and raises no error on any row (no division by what may be zero, no overflow, no subquery of
several rows), because in which order conditions are checked is a server's own choice. An answer follows from the query:
where there is a LIMIT, the order is over all output columns; aggregates that depend on the order of their input have an
ORDER BY inside. The query of a seed and a number is always the same.

    names in scope ──▶ expression(type, depth) ──▶ FROM, WHERE, GROUP BY, select list ──▶ query
"""

import random

TYPES = ("int", "big", "num", "text", "bool")

TABLES = {
    "item": [("id", "int"), ("kind", "int"), ("price", "num"), ("name", "text"), ("sold", "bool"), ("stock", "big")],
    "kind": [("id", "int"), ("title", "text"), ("parent", "int")],
    "sale": [("id", "int"), ("item", "int"), ("buyer", "text"), ("amount", "big"), ("paid", "num"), ("open", "bool")],
    "empty": [("id", "int"), ("name", "text"), ("amount", "big")],
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
    """The statements that make the tables and fill them."""
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
        compare = self.draw.choice(("=", "=", "<>", "<", "<=", ">", ">="))
        return self.draw.choice((
            f"({a}) {compare} ({b})", f"({a}) {compare} ({b})", f"({p} and {q})", f"({p} or {q})", f"not ({p})",
            f"({a}) is null", f"({a}) is not null", f"({a}) is distinct from ({b})", f"({a}) is not distinct from ({b})",
            f"({a}) in ({b}, {self.expression(type_, scope, 0)}, {self.expression(type_, scope, 0)})",
            f"({a}) not in ({b}, {self.expression(type_, scope, 0)})",
            f"({a}) between ({b}) and ({self.expression(type_, scope, depth)})",
            f"({text}) like {self.draw.choice(WORDS)!r} || '%'", f"({text}) ~ '^[a-c]+$'", f"({p}) is not true", f"({p}) is unknown",
        ))

    # Queries in expressions.

    def scalar_query(self, type_, scope, depth):
        source, inside = self.source(scope, depth)
        inner = inside + scope
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
        if self.chance(0.4):
            return f"{self.draw.choice(('', 'not '))}exists (select 1 from {source}{where})"
        type_ = self.draw.choice(("int", "text", "big"))
        left, right = self.expression(type_, scope, depth), self.expression(type_, inner, depth)
        if self.chance(0.6):
            return f"({left}) {self.draw.choice(('', 'not '))}in (select {right} from {source}{where})"
        operator = self.draw.choice(("=", "<>", "<", ">="))
        return f"({left}) {operator} {self.draw.choice(('any', 'all'))} (select {right} from {source}{where})"

    # FROM.

    def where(self, scope, depth):
        if self.chance(0.3):
            return ""
        return f" where {self.expression('bool', scope, max(depth, 1))}"

    def leaf(self, beside, depth):
        """A relation and its columns; `beside`: the columns to its left that it may read by LATERAL."""
        alias = self.new_name("r")
        if self.common and self.chance(0.35):
            name, columns = self.draw.choice(self.common)
            return f"{name} {alias}", [(f"{alias}.{column}", type_) for column, type_ in columns]
        pick = self.draw.random()
        if depth > 0 and pick < 0.15:
            text, types = self.select(beside, depth - 1)
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
            return f"generate_series(0, {self.draw.randrange(5)}) {alias} (n)", [(f"{alias}.n", "int")]
        table = self.draw.choice(("item", "item", "kind", "sale", "sale", "empty"))
        return f"{table} {alias}", [(f"{alias}.{column}", type_) for column, type_ in TABLES[table]]

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
            else:
                text, joined = f"{text} {kind} {right} on {self.condition(joined, more, kind, depth)}", joined + more
            columns = columns + more
        return text, columns

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

    def select(self, outer, depth, types=None):
        """A query and the types of its columns; `outer`: columns of the query around it."""
        if depth > 0 and types is None and self.chance(0.1):
            return self.set_operation(outer, depth)
        source, columns = self.source(outer, depth)
        scope = columns + (outer or [])
        types = types or [self.draw.choice(TYPES) for _ in range(self.draw.randrange(1, 4))]
        where = self.where(scope, depth)
        grouped = self.chance(0.3)
        tail = ""
        if grouped:
            keys = self.draw.sample(columns, min(len(columns), self.draw.randrange(0, 3)))
            free = keys + (outer or [])
            outputs = [
                self.aggregate_of(type_, columns, depth) if self.chance(0.6) or not keys else self.expression(type_, free, 1)
                for type_ in types
            ]
            if keys:
                tail = " group by " + ", ".join(text for text, _ in keys)
            if self.chance(0.3):
                tail += f" having {self.aggregate_of('big', columns, depth)} > {self.draw.randrange(3)}"
        else:
            outputs = [self.expression(type_, scope, depth) for type_ in types]
        listed = ", ".join(f"{text} as o{number}" for number, text in enumerate(outputs))
        distinct = "distinct " if not grouped and self.chance(0.12) else ""
        return f"select {distinct}{listed} from {source}{where}{tail}{self.order(len(outputs))}", types

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
        left, types = self.select(outer, depth - 1)
        right, _ = self.select(outer, depth - 1, types)
        operator = self.draw.choice(("union", "union all", "intersect", "intersect all", "except", "except all"))
        return f"({left}) {operator} ({right}){self.order(len(types))}", types

    def whole(self):
        """A query with its common table expressions."""
        parts = []
        for _ in range(self.draw.choice((0, 0, 0, 1, 2))):
            text, types = self.select(None, 1)
            name = self.new_name("w")
            columns = [(f"c{number}", type_) for number, type_ in enumerate(types)]
            parts.append(f"{name} ({', '.join(column for column, _ in columns)}) as ({text})")
            self.common.append((name, columns))
        text, _ = self.select(None, self.draw.choice((1, 2, 2, 3)))
        return ("with " + ", ".join(parts) + " " if parts else "") + text


def query(seed, number):
    """The query of this seed and number."""
    return Query(seed, number).whole()
