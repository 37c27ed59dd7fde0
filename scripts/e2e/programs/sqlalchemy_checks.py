"""SQLAlchemy over psycopg2 and its other drivers: tables made and reflected, types, the mapper's ways of loading, many rows
at once, nested transactions."""

import datetime
import decimal
import uuid

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql as pg

from harness import URL, check, keep, refused, serve


class Closing:
    def __init__(self, engine):
        self.close = engine.dispose


def engine(driver="psycopg2", **more):
    made = sa.create_engine(f"postgresql+{driver}://{URL}", **more)
    keep(Closing(made))
    return made


class Base(orm.DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "authors"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(40), unique=True)
    born: orm.Mapped[datetime.date | None]
    books: orm.Mapped[list["Book"]] = orm.relationship(back_populates="author", order_by="Book.id", primaryjoin="Author.id == foreign(Book.author_id)")


class Book(Base):
    __tablename__ = "books"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    title: orm.Mapped[str]
    price: orm.Mapped[decimal.Decimal] = orm.mapped_column(sa.Numeric(10, 2), default=decimal.Decimal("9.99"))
    author_id: orm.Mapped[int] = orm.mapped_column(index=True)
    author: orm.Mapped[Author] = orm.relationship(back_populates="books", primaryjoin="Author.id == foreign(Book.author_id)")


def library(**more):
    made = engine(**more)
    Base.metadata.create_all(made)
    with orm.Session(made) as session:
        for name in ("Ada", "Grace", "Barbara"):
            session.add(Author(name=name, books=[Book(title=f"{name} {n}", price=n) for n in range(3)]))
        session.commit()
    return made


@check
def connects(see):
    with engine().connect() as connection:
        see(connection.dialect.server_version_info[0], connection.dialect.default_schema_name, connection.scalar(sa.text("select 1")))
        see(connection.get_isolation_level(), connection.default_isolation_level)


def connects_by(driver):
    def run(see):
        made = library(driver=driver)
        with orm.Session(made) as session:
            see(session.execute(sa.select(Author.name, Book.price).join(Author.books).order_by(Book.id)).all())

    run.__name__ = f"rows_by_{driver}"
    return check(run)


connects_by("psycopg")
connects_by("pg8000")


@check
def connects_by_asyncpg(see):
    import asyncio

    from sqlalchemy.ext.asyncio import create_async_engine

    async def run():
        made = create_async_engine(f"postgresql+asyncpg://{URL}")
        async with made.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
            await connection.execute(sa.insert(Author), [{"name": "x"}, {"name": "y"}])
            see((await connection.execute(sa.select(Author.id, Author.name))).all())
        await made.dispose()

    asyncio.run(run())


@check
def create_all_twice_and_drop_all(see):
    made = engine()
    Base.metadata.create_all(made)
    Base.metadata.create_all(made)
    see(sorted(sa.inspect(made).get_table_names()))
    Base.metadata.drop_all(made)
    see(sa.inspect(made).get_table_names())


@check
def create_all_with_foreign_keys(see):
    made, metadata = engine(), sa.MetaData()
    sa.Table("p", metadata, sa.Column("id", sa.Integer, primary_key=True))
    sa.Table("c", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("p", sa.ForeignKey("p.id", ondelete="CASCADE")))
    metadata.create_all(made)
    see(sa.inspect(made).get_foreign_keys("c"))


KINDS = """create table kinds (id serial primary key, a varchar(20) not null default 'x', b numeric(8,3), c timestamptz default now(),
    d int[], e text collate "C", f uuid, g bytea, h interval, i double precision, j smallint unique, constraint positive check (b > 0))"""


@check
def inspected_columns(see):
    made = engine()
    with made.begin() as connection:
        connection.exec_driver_sql(KINDS)
    for column in sa.inspect(made).get_columns("kinds"):
        see(column["name"], column["type"], column["nullable"], column["default"], column.get("autoincrement"))


@check
def inspected_constraints(see):
    made = engine()
    with made.begin() as connection:
        connection.exec_driver_sql(KINDS)
        connection.exec_driver_sql("create index kinds_a on kinds (a, b)")
        connection.exec_driver_sql("comment on table kinds is 'all of them'")
    inspector = sa.inspect(made)
    see(inspector.get_pk_constraint("kinds"), inspector.get_unique_constraints("kinds"))
    see(inspector.get_check_constraints("kinds"), inspector.get_table_comment("kinds"))
    see(inspector.get_indexes("kinds"))


@check
def inspected_views_and_schemas(see):
    made = library()
    with made.begin() as connection:
        connection.exec_driver_sql("create view names as select name from authors")
        connection.exec_driver_sql("create schema other")
    inspector = sa.inspect(made)
    see(inspector.get_view_names(), inspector.get_view_definition("names"), inspector.has_table("names"))
    see(inspector.get_schema_names(), inspector.get_sequence_names(), inspector.has_schema("other"))


@check
def reflected_table(see):
    made = library()
    metadata = sa.MetaData()
    metadata.reflect(made)
    for table in metadata.sorted_tables:
        see(table.name, [repr(column.type) for column in table.columns], sorted(index.name for index in table.indexes))
    see(str(sa.schema.CreateTable(metadata.tables["books"]).compile(made)))


@check
def types(see):
    made, metadata = engine(), sa.MetaData()
    columns = {"i": (sa.BigInteger, 2**40), "n": (sa.Numeric(10, 3), decimal.Decimal("1.500")), "f": (sa.Double, 2.5), "b": (sa.Boolean, True),
               "d": (sa.Date, datetime.date(2024, 2, 29)), "t": (sa.Time, datetime.time(1, 2, 3)), "z": (sa.DateTime(timezone=True), datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)),
               "y": (sa.LargeBinary, b"\x00\x01"), "u": (sa.Uuid, uuid.UUID(int=7)), "v": (sa.Interval, datetime.timedelta(days=1, seconds=5)), "a": (pg.ARRAY(sa.Integer), [1, None, 3]),
               "s": (sa.Text, "é")}
    table = sa.Table("types", metadata, *(sa.Column(name, kind) for name, (kind, _) in columns.items()))
    metadata.create_all(made)
    with made.begin() as connection:
        connection.execute(table.insert(), {name: value for name, (_, value) in columns.items()})
        for name, value in connection.execute(table.select()).mappings().one().items():
            see(name, value)


@check
def json_columns(see):
    made, metadata = engine(), sa.MetaData()
    table = sa.Table("documents", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("body", pg.JSONB), sa.Column("raw", sa.JSON))
    metadata.create_all(made)
    with made.begin() as connection:
        connection.execute(table.insert(), [{"id": 1, "body": {"a": {"b": 1}}, "raw": [1]}, {"id": 2, "body": {"a": 2}, "raw": None}])
        see(connection.execute(sa.select(table.c.id).where(table.c.body["a"]["b"].as_integer() == 1)).all())
        see(connection.execute(sa.select(table.c.body).where(table.c.body.contains({"a": 2}))).all())


@check
def enum_columns(see):
    made, metadata = engine(), sa.MetaData()
    table = sa.Table("moods", metadata, sa.Column("m", sa.Enum("sad", "ok", name="mood")))
    metadata.create_all(made)
    with made.begin() as connection:
        connection.execute(table.insert(), [{"m": "ok"}, {"m": "sad"}])
        see(connection.execute(sa.select(table).order_by(table.c.m)).all())
    see(sa.inspect(made).get_enums())


@check
def many_rows_at_once(see):
    made = library()
    with made.begin() as connection:
        found = connection.execute(sa.insert(Author).returning(Author.id, Author.name), [{"name": f"n{n}"} for n in range(2500)])
        see(len(found.all()))
    with orm.Session(made) as session:
        authors = [Author(name=f"o{n}") for n in range(1500)]
        session.add_all(authors)
        session.flush()
        see(len({author.id for author in authors}))


@check
def sorted_returning(see):
    made = library()
    with made.begin() as connection:
        found = connection.execute(sa.insert(Author).returning(Author.name, sort_by_parameter_order=True), [{"name": f"n{n}"} for n in range(20)])
        see(found.scalars().all())


def loading(name, option):
    def run(see):
        made = library()
        with orm.Session(made) as session:
            for author in session.scalars(sa.select(Author).options(option).order_by(Author.id)).unique():
                see(author.name, [book.title for book in author.books])

    run.__name__ = f"{name}_loading"
    return check(run)


loading("lazy", orm.lazyload(Author.books))
loading("joined", orm.joinedload(Author.books))
loading("selectin", orm.selectinload(Author.books))
loading("subquery", orm.subqueryload(Author.books))


@check
def unit_of_work(see):
    made = library()
    with orm.Session(made) as session:
        ada = session.scalars(sa.select(Author).filter_by(name="Ada")).one()
        ada.books[0].title = "changed"
        ada.books.append(Book(title="new"))
        session.delete(ada.books[1])
        session.commit()
        see([(book.title, book.price) for book in ada.books])


@check
def queries(see):
    made = library()
    with orm.Session(made) as session:
        per = sa.select(Author.name, sa.func.count(Book.id), sa.func.sum(Book.price)).join(Author.books).group_by(Author.name).having(sa.func.count() > 1).order_by(Author.name)
        see(session.execute(per).all())
        see(session.scalars(sa.select(Author.name).where(Author.books.any(Book.price > 1)).order_by(Author.name)).all())
        see(session.execute(sa.select(Book.title, sa.func.row_number().over(partition_by=Book.author_id, order_by=Book.price.desc())).order_by(Book.id).limit(4).offset(1)).all())
        see(session.scalars(sa.select(Author.name).where(Author.name.ilike("%A%"), Author.id.in_([1, 2, 3])).order_by(sa.nulls_last(Author.born), Author.id)).all())


@check
def common_table_expressions(see):
    made = library()
    with made.begin() as connection:
        counted = sa.select(sa.literal(1).label("n")).cte("counted", recursive=True)
        counted = counted.union_all(sa.select(counted.c.n + 1).where(counted.c.n < 5))
        see(connection.execute(sa.select(counted.c.n)).all())
        moved = sa.delete(Book).where(Book.price > 1).returning(Book.title).cte("moved")
        see(sorted(connection.execute(sa.select(moved.c.title)).all()))


@check
def lateral_and_values(see):
    made = library()
    with made.begin() as connection:
        first = sa.select(Book.title).where(Book.author_id == Author.id).order_by(Book.price.desc()).limit(1).lateral()
        see(connection.execute(sa.select(Author.name, first.c.title).join(first, sa.true()).order_by(Author.id)).all())
        given = sa.values(sa.column("a", sa.Integer), sa.column("b", sa.String), name="given").data([(1, "x"), (2, "y")])
        see(connection.execute(sa.select(given).order_by(given.c.a)).all())


@check
def upsert(see):
    made = library()
    with made.begin() as connection:
        insert = pg.insert(Author).values([{"name": "Ada", "born": datetime.date(1815, 12, 10)}, {"name": "New", "born": None}])
        insert = insert.on_conflict_do_update(index_elements=[Author.name], set_={"born": insert.excluded.born}).returning(Author.name, Author.born)
        see(connection.execute(insert).all())
        see(connection.execute(pg.insert(Author).values(name="Ada").on_conflict_do_nothing()).rowcount)


@check
def bulk_updates(see):
    made = library()
    with orm.Session(made) as session:
        see(session.execute(sa.update(Book).where(Book.author_id == Author.id, Author.name == "Ada").values(price=Book.price + 1), execution_options={"synchronize_session": False}).rowcount)
        session.execute(sa.update(Book), [{"id": 1, "title": "one"}, {"id": 2, "title": "two"}])
        see(session.scalars(sa.select(Book.title).order_by(Book.id).limit(2)).all())
        see(session.execute(sa.delete(Book).where(Book.price > 2)).rowcount)


@check
def nested_transactions(see):
    made = library()
    with orm.Session(made) as session:
        try:
            with session.begin_nested():
                session.add(Author(name="Ada"))
                session.flush()
        except sa.exc.IntegrityError:
            see("refused")
        session.add(Author(name="after"))
        session.commit()
        see(session.scalar(sa.select(sa.func.count(Author.id))))


@check
def errors(see):
    made = library()
    with orm.Session(made) as session:
        session.add(Author(name="Ada"))
        refused(see, session.commit)
        session.rollback()
        refused(see, session.execute, sa.text("select * from nowhere"))


@check
def isolation_levels(see):
    for level in ("READ COMMITTED", "REPEATABLE READ", "AUTOCOMMIT"):
        with engine(isolation_level=level).connect() as connection:
            see(level, connection.get_isolation_level() if level != "AUTOCOMMIT" else connection.scalar(sa.text("select 1")))


@check
def serializable(see):
    with engine(isolation_level="SERIALIZABLE").connect() as connection:
        see(connection.get_isolation_level())


@check
def streamed_results(see):
    made = library()
    with made.connect() as connection:
        found = connection.execution_options(stream_results=True, max_row_buffer=2).execute(sa.select(Book.title).order_by(Book.id))
        see([part for part in found.scalars().partitions(4)])


@check
def sequences(see):
    made, metadata = engine(), sa.MetaData()
    sa.Table("s", metadata, sa.Column("id", sa.Integer, sa.Sequence("steps", start=10, increment=5), primary_key=True), sa.Column("x", sa.Text))
    metadata.create_all(made)
    with made.begin() as connection:
        see([connection.execute(metadata.tables["s"].insert().values(x="a")).inserted_primary_key for _ in range(2)])


@check
def identity_and_computed(see):
    made, metadata = engine(), sa.MetaData()
    table = sa.Table("c", metadata, sa.Column("id", sa.Integer, sa.Identity(always=True, start=5), primary_key=True), sa.Column("n", sa.Integer), sa.Column("d", sa.Integer, sa.Computed("n * 2")))
    metadata.create_all(made)
    with made.begin() as connection:
        see(connection.execute(table.insert().values(n=4).returning(table)).all())
    see([(column["name"], column.get("identity"), column.get("computed")) for column in sa.inspect(made).get_columns("c")])


@check
def indexes_of_all_kinds(see):
    made, metadata = engine(), sa.MetaData()
    table = sa.Table("x", metadata, sa.Column("a", sa.Integer), sa.Column("b", sa.Text))
    sa.Index("x_part", table.c.a, postgresql_where=table.c.a > 5)
    sa.Index("x_lower", sa.func.lower(table.c.b))
    sa.Index("x_include", table.c.a.desc(), postgresql_include=["b"])
    metadata.create_all(made)
    see(*sorted(map(repr, sa.inspect(made).get_indexes("x"))))


@check
def temporary_tables(see):
    made = engine()
    with made.begin() as connection:
        table = sa.Table("t", sa.MetaData(), sa.Column("n", sa.Integer), prefixes=["TEMPORARY"], postgresql_on_commit="DROP")
        table.create(connection)
        connection.execute(table.insert(), [{"n": 1}, {"n": 2}])
        see(connection.execute(sa.select(table)).all(), sa.inspect(connection).get_temp_table_names())


@check
def for_update(see):
    made = library()
    with orm.Session(made) as one, orm.Session(made) as two:
        one.scalars(sa.select(Author).where(Author.id == 1).with_for_update()).one()
        see(two.scalars(sa.select(Author.name).order_by(Author.id).with_for_update(skip_locked=True)).all())
        refused(see, two.execute, sa.select(Author).with_for_update(nowait=True))


serve()
