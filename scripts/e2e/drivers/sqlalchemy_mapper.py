"""SQLAlchemy over psycopg and over pg8000: tables made from classes, rows as objects, pools, and its start-up questions."""

import datetime
import decimal

import sqlalchemy
from sqlalchemy import orm

from checks import DATABASE, PORT, USER, equal


class Base(orm.DeclarativeBase):
    pass


class Account(Base):
    __tablename__ = "alchemy_accounts"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    owner: orm.Mapped[str] = orm.mapped_column(sqlalchemy.String(40), unique=True)
    balance: orm.Mapped[decimal.Decimal] = orm.mapped_column(sqlalchemy.Numeric(12, 2))
    opened: orm.Mapped[datetime.date]
    changed: orm.Mapped[datetime.datetime | None]


def accounts():
    day = datetime.date(2024, 2, 29)
    return [Account(owner=f"owner {n}", balance=decimal.Decimal(n) / 4, opened=day) for n in range(100)]


def work(engine):
    with engine.connect() as connection:
        equal(connection.dialect.default_schema_name, "public")
        equal(connection.dialect.server_version_info[0], 15)
    # checkfirst asks the catalog with joins, which this server does not plan.
    Base.metadata.create_all(engine, checkfirst=False)
    with orm.Session(engine) as session:
        # The keys that the server gives come back with RETURNING.
        session.add_all(accounts())
        session.commit()
        first = session.scalars(sqlalchemy.select(Account).where(Account.owner == "owner 3")).one()
        equal((first.balance, first.opened, first.changed), (decimal.Decimal("0.75"), datetime.date(2024, 2, 29), None))
        first.balance += 1
        first.changed = datetime.datetime(2024, 3, 1, 12, 30, 15, 250000)
        session.commit()
        equal(session.get(Account, first.id).balance, decimal.Decimal("1.75"))
        total = sqlalchemy.select(sqlalchemy.func.count(), sqlalchemy.func.sum(Account.balance))
        equal(session.execute(total).one(), (100, decimal.Decimal("1238.50")))
        session.add(Account(owner="owner 3", balance=0, opened=first.opened))
        try:
            session.commit()
            raise AssertionError("no IntegrityError")
        except sqlalchemy.exc.IntegrityError:
            session.rollback()
        session.delete(first)
        session.rollback()
        equal(session.scalar(sqlalchemy.select(sqlalchemy.func.count()).select_from(Account)), 100)
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        equal(connection.execute(sqlalchemy.text("show transaction isolation level")).scalar(), "repeatable read")
        for sql in ("selec 1", "select * from missing"):
            try:
                connection.execute(sqlalchemy.text(sql))
                raise AssertionError(f"no error for {sql}")
            except sqlalchemy.exc.ProgrammingError:
                connection.rollback()
    Base.metadata.drop_all(engine, checkfirst=False)
    engine.dispose()


for name in ("psycopg", "pg8000"):
    print(name, flush=True)
    work(sqlalchemy.create_engine(f"postgresql+{name}://{USER}@127.0.0.1:{PORT}/{DATABASE}"))
print("done")
