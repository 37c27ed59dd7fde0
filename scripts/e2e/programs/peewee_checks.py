"""peewee: models, queries, PostgreSQL's own fields, transactions, changes of tables, introspection."""

import datetime
import decimal

import peewee
from playhouse import migrate, postgres_ext, reflection

from harness import DATABASE, PORT, USER, check, keep, refused, serve

database = peewee.DatabaseProxy()


class Base(peewee.Model):
    class Meta:
        database = database
        legacy_table_names = False


class Person(Base):
    name = peewee.CharField(max_length=40, unique=True)
    born = peewee.DateField(null=True)


class Pet(Base):
    # No constraint in the database: one check has that.
    owner_id = peewee.IntegerField(index=True)
    name = peewee.CharField()
    price = peewee.DecimalField(10, 2, default=0)
    seen = peewee.DateTimeField(default=datetime.datetime(2024, 1, 1))


def connect(*tables):
    found = keep(postgres_ext.PostgresqlExtDatabase(DATABASE, user=USER, host="127.0.0.1", port=PORT, password="none"))
    database.initialize(found)
    if tables:
        found.create_tables(tables)
    return found


def family():
    found = connect(Person, Pet)
    for number, name in enumerate(("Ada", "Grace", "Edsger")):
        person = Person.create(name=name, born=datetime.date(1900 + number, 1, 1))
        for n in range(number):
            Pet.create(owner_id=person.id, name=f"{name}'s {n}", price=decimal.Decimal(n))
    return found


@check
def create_tables(see):
    found = connect(Person, Pet)
    found.create_tables([Person, Pet])
    see(sorted(found.get_tables()), found.get_columns("person"), sorted(found.get_indexes("person")), found.get_primary_keys("pet"))


@check
def foreign_keys(see):
    class Child(Base):
        parent = peewee.ForeignKeyField(Person, on_delete="CASCADE")

    found = connect(Person, Child)
    see(found.get_foreign_keys("child"))


@check
def queries(see):
    family()
    see([(person.name, person.born) for person in Person.select().where((Person.name % "%a") | (Person.born > datetime.date(1901, 5, 1))).order_by(Person.id)])
    see(list(Person.select(Person.name, peewee.fn.COUNT(Pet.id).alias("n")).join(Pet, peewee.JOIN.LEFT_OUTER, on=(Pet.owner_id == Person.id)).group_by(Person.name).order_by(Person.name).tuples()))
    see(Person.select().where(Person.name ** "ADA").exists(), Pet.select(peewee.fn.SUM(Pet.price)).scalar())


@check
def windows_and_ctes(see):
    family()
    rank = peewee.fn.RANK().over(partition_by=[Pet.owner_id], order_by=[Pet.price.desc()])
    see(list(Pet.select(Pet.name, rank).order_by(Pet.id).tuples()))
    cte = Pet.select(Pet.owner_id, peewee.fn.MAX(Pet.price).alias("top")).group_by(Pet.owner_id).cte("tops", columns=("owner", "top"))
    see(list(Person.select(Person.name, cte.c.top).join(cte, on=(cte.c.owner == Person.id)).with_cte(cte).order_by(Person.id).tuples()))


@check
def insert_many_and_returning(see):
    connect(Person)
    see(Person.insert_many([{"name": f"p{n}"} for n in range(5)]).returning(Person.id, Person.name).tuples().execute()[:])
    see([row.name for row in Person.update(name=Person.name.concat("!")).where(Person.id < 3).returning(Person).execute()], Person.delete().where(Person.id > 3).execute())


@check
def upsert(see):
    family()
    Person.insert(name="Ada", born=None).on_conflict(conflict_target=[Person.name], update={Person.born: peewee.EXCLUDED.born}).execute()
    Person.insert(name="Ada").on_conflict_ignore().execute()
    see(list(Person.select(Person.name, Person.born).order_by(Person.name).tuples()))


@check
def transactions(see):
    found = family()
    with found.atomic() as transaction:
        Pet.delete().execute()
        transaction.rollback()
    see(Pet.select().count())


@check
def nested_transactions(see):
    found = family()
    with found.atomic():
        with found.atomic() as inner:
            Pet.delete().execute()
            inner.rollback()
        see(Pet.select().count())


@check
def errors(see):
    found = family()
    refused(see, lambda: Person.create(name="Ada"))
    found.rollback()
    refused(see, found.execute_sql, "select * from nowhere")


@check
def array_field(see):
    class Listing(Base):
        words = postgres_ext.ArrayField(peewee.CharField, index=False)

    connect(Listing)
    Listing.create(words=["a", "b"])
    see(Listing.select().where(Listing.words.contains("a")).count(), Listing.get().words)


@check
def json_field(see):
    class Document(Base):
        body = postgres_ext.BinaryJSONField(index=False)

    connect(Document)
    Document.create(body={"a": {"b": 1}})
    see(Document.select().where(Document.body.contains({"a": {"b": 1}})).count(), Document.get().body)


@check
def migrations(see):
    found = family()
    migrator = migrate.PostgresqlMigrator(found)
    migrate.migrate(migrator.add_column("pet", "weight", peewee.IntegerField(default=3)), migrator.rename_column("pet", "name", "label"),
                    migrator.drop_not_null("pet", "label"), migrator.add_index("pet", ("label", "weight"), True), migrator.rename_table("pet", "beast"))
    see(found.get_columns("beast"), [index.columns for index in found.get_indexes("beast")])


@check
def introspected_models(see):
    found = family()
    models = reflection.generate_models(found)
    see(sorted(models), sorted(models["pet"]._meta.fields), models["person"].select().count())


@check
def server_side_cursor(see):
    family()
    see([pet.name for pet in postgres_ext.ServerSide(Pet.select().order_by(Pet.id))])


serve()
