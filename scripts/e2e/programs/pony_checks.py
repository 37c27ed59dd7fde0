"""Pony: entities, tables made by it, and queries written as Python generators."""

import datetime
import decimal

from pony import orm

from harness import DATABASE, PORT, USER, check, serve


def database():
    found = orm.Database()

    class Product(found.Entity):
        name = orm.Required(str, 40, unique=True)
        price = orm.Required(decimal.Decimal, precision=10, scale=2)
        kind = orm.Optional(str)
        made = orm.Optional(datetime.date)

    found.bind(provider="postgres", user=USER, host="127.0.0.1", port=PORT, database=DATABASE, password="none")
    found.generate_mapping(create_tables=True)
    with orm.db_session:
        for n in range(6):
            Product(name=f"p{n}", price=decimal.Decimal(n) / 2, kind="even" if n % 2 == 0 else "odd", made=datetime.date(2024, 1 + n, 1))
    return found


def checked(function):
    def run(see):
        found = database()
        try:
            with orm.db_session:
                function(see, found)
        finally:
            found.disconnect()

    run.__name__ = function.__name__
    return check(run)


@checked
def selects(see, found):
    see(orm.select(p.name for p in found.Product if p.price > 1 and p.name.startswith("p")).order_by(1)[:])
    see([p.name for p in found.Product.select(lambda p: p.made.year == 2024 and p.made.month < 3).order_by(lambda p: orm.desc(p.price))])


@checked
def aggregates(see, found):
    see(orm.select((p.kind, orm.count(p), orm.sum(p.price)) for p in found.Product).order_by(1)[:])
    see(orm.avg(p.price for p in found.Product), orm.max(p.name for p in found.Product), orm.exists(p for p in found.Product if p.price > 100))


@checked
def pages_and_distinct(see, found):
    see([p.name for p in found.Product.select().order_by(found.Product.id).page(2, 2)], orm.select(p.kind for p in found.Product).order_by(1)[:])


@checked
def changes(see, found):
    found.Product.get(name="p1").price = 50
    found.Product.get(name="p2").delete()
    orm.flush()
    see(orm.select(p.price for p in found.Product if p.name == "p1").first(), orm.delete(p for p in found.Product if p.kind == "even"))


@checked
def raw_queries(see, found):
    least = 1
    see(found.select('select "name" from "product" where "price" >= $least order by 1'))
    see([p.name for p in found.Product.select_by_sql('select * from "product" where "price" > $least order by "id"')])


@checked
def locked(see, found):
    see(found.Product.get_for_update(name="p1").price, [p.name for p in found.Product.select(lambda p: p.price > 1).order_by(found.Product.id).for_update(skip_locked=True)])


@checked
def rollback(see, found):
    found.Product.get(name="p1").price = 50
    orm.flush()
    orm.rollback()
    see(found.Product.get(name="p1").price)


@checked
def unique_violation(see, found):
    try:
        found.insert("product", name="p1", price=1, kind="")
    except Exception as error:
        see(type(error).__name__)
        orm.rollback()


serve()
