"""Tortoise over asyncpg: tables from models, queries, aggregates, transactions."""

import datetime
import decimal

from tortoise import Tortoise, fields
from tortoise.exceptions import IntegrityError
from tortoise.expressions import F, Q
from tortoise.functions import Count, Sum
from tortoise.models import Model
from tortoise.transactions import in_transaction

from harness import URL, check, serve


class Event(Model):
    id = fields.IntField(primary_key=True)
    name = fields.CharField(max_length=40, unique=True)
    kind = fields.CharField(max_length=10, db_index=True)
    price = fields.DecimalField(10, 2, default=0)
    at = fields.DatetimeField()
    open = fields.BooleanField(default=True)
    code = fields.UUIDField(null=True)


class Document(Model):
    id = fields.IntField(primary_key=True)
    body = fields.JSONField()


class Talk(Model):
    id = fields.IntField(primary_key=True)
    event = fields.ForeignKeyField("foreign.Occasion", related_name="talks")


class Occasion(Model):
    id = fields.IntField(primary_key=True)
    # Without another column Tortoise does not ask for the key that the server has given.
    place = fields.CharField(max_length=20)


def with_models(*models):
    """A check over the tables of these models."""

    def decorate(function):
        async def run(see):
            import sys
            import types

            module = types.ModuleType("its_models")
            for model in models:
                setattr(module, model.__name__, model)
            sys.modules["its_models"] = module
            try:
                await Tortoise.init(db_url=f"asyncpg://{URL}", modules={"foreign": ["its_models"]})
                await Tortoise.generate_schemas()
                if Event in models:
                    await Event.bulk_create([Event(name=f"e{n}", kind="odd" if n % 2 else "even", price=decimal.Decimal(n) / 4, at=datetime.datetime(2024, 1 + n, 1, tzinfo=datetime.timezone.utc)) for n in range(8)])
                await function(see)
            finally:
                await Tortoise.close_connections()

        run.__name__ = function.__name__
        return check(run)

    return decorate


@with_models(Event)
async def filters(see):
    see(await Event.filter(Q(price__gt=1) | Q(name__icontains="E0"), open=True).order_by("-price").values_list("name", "price"))
    see(await Event.exclude(kind="odd").filter(at__lt=datetime.datetime(2024, 5, 1, tzinfo=datetime.timezone.utc)).count(), await Event.filter(name__in=["e1", "e9"]).exists())


@with_models(Event)
async def aggregates(see):
    see(await Event.annotate(n=Count("id"), worth=Sum("price")).group_by("kind").order_by("kind").values("kind", "n", "worth"))


@with_models(Event)
async def updates_with_expressions(see):
    see(await Event.filter(kind="odd").update(price=F("price") + 1), await Event.filter(kind="odd").order_by("id").values_list("price", flat=True))


@with_models(Event)
async def upserts(see):
    await Event.bulk_create([Event(name="e1", kind="new", at=datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc))], on_conflict=["name"], update_fields=["kind"])
    see((await Event.get(name="e1")).kind, (await Event.get_or_create(name="e2", defaults={}))[1])


@with_models(Event)
async def transactions(see):
    try:
        async with in_transaction():
            await Event.all().delete()
            raise KeyError
    except KeyError:
        see(await Event.all().count())


@with_models(Event)
async def locked_rows(see):
    async with in_transaction():
        see(await Event.filter(price__gt=1).select_for_update(skip_locked=True).order_by("id").values_list("name", flat=True))


@with_models(Event)
async def errors(see):
    try:
        await Event.create(name="e1", kind="x", at=datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc))
    except IntegrityError as error:
        see(str(error))


@with_models(Document)
async def json_field(see):
    await Document.create(body={"a": [1, None]})
    see((await Document.get(id=1)).body)


@with_models(Occasion, Talk)
async def foreign_keys(see):
    occasion = await Occasion.create(place="here")
    await Talk.create(event=occasion)
    see([len(found.talks) for found in await Occasion.all().prefetch_related("talks")])


serve()
