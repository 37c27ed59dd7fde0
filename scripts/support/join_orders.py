"""Twelve tables with skewed values, queries that join 3 to 12 of them, and their joins in orders of our choice.

A `sale` is in the middle of a star; `customer`, `store` and `product` begin chains, and `returned` and `supply` have many
rows for one sale or one brand:

    returned > sale > customer > city > region        sale > product > brand > maker        sale > day
                    > store > city                    supply > brand                        sale > promotion

Few customers and few products have most of the sales (their ranks are drawn by a Pareto distribution), the cities of a
region differ in size by two orders of magnitude, and a store sells mostly to its own city: a planner that takes columns
for independent and even ones is wrong by large factors.

A query is a set of tables and conditions on single tables. All edges between its tables are conditions too.
"""

import itertools
import random
from typing import NamedTuple

# Name, columns, rows at scale 1. The first column is the primary key.
TABLES = {
    "region": ("r_id int, r_name text", 12),
    "city": ("ci_id int, ci_region int, ci_size int", 600),
    "customer": ("c_id int, c_city int, c_segment int, c_note text", 20_000),
    "store": ("st_id int, st_city int, st_kind int", 300),
    "maker": ("m_id int, m_country int", 80),
    "brand": ("b_id int, b_maker int, b_kind int", 800),
    "product": ("p_id int, p_brand int, p_price int, p_note text", 8_000),
    "supply": ("su_id int, su_brand int, su_stock int", 12_000),
    "promotion": ("pr_id int, pr_kind int", 400),
    "day": ("d_id int, d_month int, d_weekday int", 730),
    "sale": ("s_id int, s_customer int, s_store int, s_product int, s_promotion int, s_day int, s_amount int", 120_000),
    "returned": ("re_id int, re_sale int, re_reason int", 10_000),
}

# A column that refers to the first column of another table.
EDGES = [
    ("city", "ci_region", "region"), ("customer", "c_city", "city"), ("store", "st_city", "city"),
    ("brand", "b_maker", "maker"), ("product", "p_brand", "brand"), ("supply", "su_brand", "brand"),
    ("sale", "s_customer", "customer"), ("sale", "s_store", "store"), ("sale", "s_product", "product"),
    ("sale", "s_promotion", "promotion"), ("sale", "s_day", "day"), ("returned", "re_sale", "sale"),
]


class Query(NamedTuple):
    """Tables with the condition on each, which may be empty."""

    name: str
    tables: dict

    def sql(self):
        """The query as a list of tables with all conditions behind it."""
        conditions = [*conditions_between(self.tables, self.tables), *(one for one in self.tables.values() if one)]
        return f"select {measures(self.tables)} from {', '.join(self.tables)} where {' and '.join(conditions)}"

    def in_order(self, order):
        """The query with its tables joined one after the other: each step is a subquery that stays apart."""
        step = order[0] + (f" where {self.tables[order[0]]}" if self.tables[order[0]] else "")
        for place, table in enumerate(order[1:], 1):
            conditions = [*conditions_between(order[:place], [table]), *filter(None, [self.tables[table]])]
            step = f"(select * from {step} offset 0) as before_{place}, {table} where {' and '.join(conditions)}"
        return f"select {measures(self.tables)} from {step}"

    def orders(self, seed, count):
        """Different orders in which each table but the first is joined to one before it."""
        draw = random.Random(f"{seed} {self.name}")
        found = set()
        for _ in range(count * 20):
            rest = list(self.tables)
            order = [rest.pop(draw.randrange(len(rest)))]
            while rest:
                table = draw.choice([one for one in rest if any(conditions_between(order, [one]))])
                rest.remove(table)
                order.append(table)
            found.add(tuple(order))
            if len(found) == count:
                break
        return sorted(found)


def key(table):
    return TABLES[table][0].split()[0]


def conditions_between(some, others):
    """The conditions that join a table of one list with a table of another."""
    pairs = set(itertools.product(some, others)) | set(itertools.product(others, some))
    return [f"{column} = {key(to)}" for source, column, to in EDGES if (source, to) in pairs]


def measures(tables):
    """What a query computes: it reads a column of each table, whichever they are."""
    sums = [f"sum({key(table)}::bigint)" for table in tables]
    return ", ".join(["count(*)", *sums])


def star(name, **conditions):
    return Query(f"star {name}", {"sale": "", **conditions})


def chain(name, **conditions):
    return Query(f"chain {name}", conditions)


def mix(name, **conditions):
    return Query(f"mix {name}", conditions)


QUERIES = [
    star("3", customer="c_segment = 7", product="p_price < 30"),
    star("4", customer="c_id = 3", product="p_id < 40", day="d_month = 5"),
    star("5", customer="", store="st_kind = 2", promotion="pr_kind = 9", day="d_weekday = 6"),
    star("6 by its dimensions", customer="c_segment = 3", store="st_id < 20", product="p_price > 100", promotion="", day=""),
    star("6 by none", customer="", store="", product="", promotion="", day="d_id between 100 and 110"),
    chain("3", city="ci_size > 90", region="r_id = 1", customer=""),
    chain("4", product="", brand="", maker="m_country < 4", supply="su_stock < 20"),
    chain("4 from its end", sale="", customer="", city="", region="r_id = 12"),
    chain("5", returned="re_reason = 4", sale="", product="", brand="", maker="m_id = 2"),
    chain("5 of frequent customers", returned="", sale="", customer="c_id <= 5", city="", region=""),
    chain("6", returned="", sale="s_amount > 900", product="", brand="b_kind < 4", maker="", supply="su_stock > 60"),
    mix("4", sale="", customer="", store="st_kind = 1", city="ci_id = 1"),
    mix("5", sale="", customer="", store="", city="", region="r_id = 2"),
    mix("6", sale="", customer="c_segment = 2", city="", product="", brand="b_id = 1", day="d_month = 11"),
    mix("7", sale="", customer="", city="ci_size < 10", region="", product="", brand="", maker="m_country < 5"),
    mix("8", sale="", customer="", city="", region="r_name = 'region 2'", store="", product="p_price = 3", brand="", day=""),
    mix("9", returned="re_reason < 2", sale="", customer="", city="", region="", product="", brand="", maker="m_country < 6",
        day=""),
    mix("10", returned="", sale="", customer="c_segment = 1", city="", region="", store="", product="", brand="", maker="",
        promotion="pr_id = 8"),
    mix("11", returned="", sale="", customer="", city="", region="r_id = 2", store="st_kind < 3", product="", brand="",
        maker="", promotion="", day="d_month < 4"),
    mix("12", returned="", sale="", customer="", city="", region="", store="", product="p_price < 200", brand="", maker="",
        promotion="pr_kind = 1", day="", supply="su_stock = 50"),
    mix("12 of two weeks", returned="", sale="", customer="", city="", region="", store="", product="", brand="", maker="",
        promotion="", day="d_id < 15", supply=""),
]


def rows_of(scale):
    """How many rows each table has: those in the middle and what hangs on them follow the scale."""
    return {table: max(10, round(rows * scale)) if rows > 1000 else rows for table, (_, rows) in TABLES.items()}


def data(scale, seed):
    """The tables' rows, by table."""
    draw = random.Random(seed)
    rows = rows_of(scale)

    def skewed(table, shape=1.1):
        """A key of a table: a low one far more often than a high one."""
        while (value := int(draw.paretovariate(shape))) > rows[table]:
            pass
        return value

    def even(table):
        return draw.randint(1, rows[table])

    keys = {table: range(1, count + 1) for table, count in rows.items()}
    cities = {city: skewed("region", 0.7) for city in keys["city"]}
    homes = {customer: skewed("city", 0.6) for customer in keys["customer"]}
    stores_of = {}
    stores = {store: skewed("city", 0.6) for store in keys["store"]}
    for store, city in stores.items():
        stores_of.setdefault(city, []).append(store)

    def sale(number):
        customer = skewed("customer", 0.5)
        near = stores_of.get(homes[customer])
        store = draw.choice(near) if near and draw.random() < 0.8 else even("store")
        return number, customer, store, skewed("product", 0.6), skewed("promotion", 0.8), even("day"), draw.randint(1, 1000)

    rows_by_table = {
        "region": [(one, f"region {one}") for one in keys["region"]],
        "city": [(one, cities[one], draw.randint(1, 100)) for one in keys["city"]],
        "customer": [(one, homes[one], min(int(draw.expovariate(0.5)), 20), "c" * 60) for one in keys["customer"]],
        "store": [(one, stores[one], draw.randint(0, 5)) for one in keys["store"]],
        "maker": [(one, draw.randint(1, 12)) for one in keys["maker"]],
        "brand": [(one, skewed("maker", 0.8), draw.randint(0, 9)) for one in keys["brand"]],
        "product": [(one, skewed("brand", 0.5), int(draw.paretovariate(0.8)) % 1000, "p" * 40) for one in keys["product"]],
        "supply": [(one, skewed("brand", 0.5), draw.randint(0, 100)) for one in keys["supply"]],
        "promotion": [(one, draw.randint(0, 19)) for one in keys["promotion"]],
        "day": [(one, one // 30 % 12 + 1, one % 7) for one in keys["day"]],
        "sale": [sale(one) for one in keys["sale"]],
    }
    rows_by_table["returned"] = [(one, even("sale"), skewed("region", 0.6)) for one in keys["returned"]]
    return rows_by_table


def load(connection, rows):
    """Makes, fills and analyses the tables, with an index on each column that refers to another table."""
    for table, (columns, _) in TABLES.items():
        connection.execute(f"create table {table} ({columns}, primary key ({key(table)}))")
        with connection.cursor() as cursor, cursor.copy(f"copy {table} from stdin") as copy:
            for row in rows[table]:
                copy.write_row(row)
    for source, column, _ in EDGES:
        connection.execute(f"create index {source}_{column} on {source} ({column})")
    connection.execute("vacuum analyze")


# What reads or joins rows; other nodes hand on what these have found.
WORKING = ("Seq Scan", "Index Scan", "Index Only Scan", "Nested Loop", "Hash Join", "Merge Join")


def work(node):
    """Rows that the scans and joins of a plan of EXPLAIN (ANALYZE, FORMAT JSON) have found and looked at, and how often
    they were started."""
    below = sum(work(part) for part in node.get("Plans", ()))
    if node["Node Type"] not in WORKING:
        return below
    removed = sum(node.get(f"Rows Removed by {what}", 0) for what in ("Filter", "Join Filter", "Index Recheck"))
    return below + node["Actual Loops"] * (1 + node["Actual Rows"] + removed)


def work_of(connection, sql):
    """The work of a query."""
    [(plan,)] = connection.execute(f"explain (analyze, timing off, format json) {sql}").fetchall()
    return work(plan[0]["Plan"])
