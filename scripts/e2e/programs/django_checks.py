"""Django: the migrations of its own applications, models, queries, transactions, fields of PostgreSQL alone, inspectdb."""

import datetime
import decimal
import io
import sys
import types
import uuid

import django
from django.conf import settings

from harness import DATABASE, PORT, USER, check, refused, serve

# The application that the models below belong to.
sys.modules["shop"] = types.ModuleType("shop")
sys.modules["shop"].__path__ = ["/nowhere"]

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": DATABASE, "USER": USER, "PASSWORD": "none", "HOST": "127.0.0.1", "PORT": PORT}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "django.contrib.admin", "django.contrib.messages", "django.contrib.postgres", "shop"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", USE_TZ=True, SECRET_KEY="of no use",
)
django.setup()

from django.contrib.postgres import aggregates, fields  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, connections, models, transaction  # noqa: E402
from django.db.models import Avg, Case, Count, Exists, F, Max, OuterRef, Prefetch, Q, Subquery, Sum, Value, When, Window  # noqa: E402
from django.db.models.functions import Coalesce, Concat, ExtractYear, Lower, Rank, TruncMonth  # noqa: E402


class Tag(models.Model):
    name = models.CharField(max_length=20, unique=True)

    class Meta:
        app_label = "shop"


class Maker(models.Model):
    name = models.CharField(max_length=40)

    class Meta:
        app_label = "shop"


class Item(models.Model):
    # A constraint in the database is in one check alone.
    maker = models.ForeignKey(Maker, models.CASCADE, related_name="items", db_constraint=False)
    name = models.CharField(max_length=40)
    price = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    made = models.DateTimeField()
    stock = models.PositiveIntegerField(default=0)
    code = models.UUIDField(default=uuid.uuid4)
    blob = models.BinaryField(default=b"")
    lasts = models.DurationField(default=datetime.timedelta(days=1))

    class Meta:
        app_label = "shop"
        indexes = [models.Index(fields=["name", "price"])]
        constraints = [models.CheckConstraint(condition=Q(price__gt=0), name="price_positive")]


def make(*kinds):
    with connection.schema_editor() as editor:
        for kind in kinds:
            editor.create_model(kind)


def shop():
    make(Maker, Item)
    for number, name in enumerate(("Acme", "Bolt", "Core"), 1):
        maker = Maker.objects.create(name=name)
        for n in range(number):
            Item.objects.create(maker=maker, name=f"{name} {n}", price=decimal.Decimal(n + 1), stock=n, made=datetime.datetime(2024, n + 1, 5, tzinfo=datetime.timezone.utc))


def checked(function):
    """A check that begins with a new connection."""

    def run(see):
        try:
            function(see)
        finally:
            connection.close()
            del connections["default"]

    run.__name__ = function.__name__
    return check(run)


@checked
def migrate(see):
    out = io.StringIO()
    call_command("migrate", stdout=out, verbosity=1, no_color=True)
    see(*out.getvalue().splitlines())


@checked
def migrations_back(see):
    call_command("migrate", verbosity=0)
    out = io.StringIO()
    call_command("migrate", "sessions", "zero", stdout=out, no_color=True)
    see(*out.getvalue().splitlines())


@checked
def users_and_permissions(see):
    from django.contrib.auth.models import Permission, User

    call_command("migrate", verbosity=0)
    user = User.objects.create_user("ada", "ada@example.org", "secret")
    user.user_permissions.add(Permission.objects.get(codename="add_user"))
    see(User.objects.get(username="ada").has_perm("auth.add_user"), Permission.objects.count())


@checked
def models_are_made_and_dropped(see):
    make(Maker, Item)
    with connection.schema_editor() as editor:
        editor.delete_model(Item)
    see(connection.introspection.table_names())


@checked
def foreign_key_in_the_database(see):
    class Owned(models.Model):
        maker = models.ForeignKey(Maker, models.CASCADE)

        class Meta:
            app_label = "owned"

    make(Maker, Owned)
    refused(see, lambda: Owned.objects.create(maker_id=99))


@checked
def queries(see):
    shop()
    see(list(Item.objects.filter(Q(price__gt=1) | Q(name__startswith="Acme"), made__year=2024).exclude(stock__in=[5]).order_by("name").values_list("name", "price")))
    see(list(Item.objects.filter(name__icontains="b", maker__name__iexact="BOLT").values("name")), Item.objects.filter(name__regex=r"^C.* \d$").count())
    see(Item.objects.order_by("-price", "name").first().name, Item.objects.filter(price__isnull=True).exists(), list(Item.objects.values_list("maker__name", flat=True).distinct().order_by("maker__name")))
    see(list(Item.objects.order_by("id").values_list("name", flat=True)[1:3]), list(Item.objects.order_by("maker", "-price").distinct("maker").values_list("name", flat=True)))


@checked
def aggregation(see):
    shop()
    see(Item.objects.aggregate(Count("id"), Sum("price"), Avg("price"), Max("made")))
    see(list(Maker.objects.annotate(n=Count("items"), worth=Sum(F("items__price") * F("items__stock"))).filter(n__gt=1).order_by("name").values_list("name", "n", "worth")))
    see(list(Item.objects.annotate(month=TruncMonth("made"), year=ExtractYear("made")).values("month", "year").annotate(n=Count("id", filter=Q(price__gt=1))).order_by("month")))


@checked
def expressions(see):
    shop()
    see(list(Item.objects.annotate(level=Case(When(price__gt=2, then=Value("high")), default=Value("low")), label=Concat(Lower("name"), Value("!"))).order_by("id").values_list("level", "label")))
    see(Item.objects.filter(stock__lt=F("price")).update(stock=F("stock") + 10), list(Item.objects.annotate(v=Coalesce("price", Value(0), output_field=models.DecimalField())).order_by("id").values_list("v", flat=True)))


@checked
def subqueries_and_windows(see):
    shop()
    best = Item.objects.filter(maker=OuterRef("pk")).order_by("-price")
    see(list(Maker.objects.annotate(best=Subquery(best.values("name")[:1]), rich=Exists(best.filter(price__gt=2))).order_by("id").values_list("best", "rich")))
    see(list(Item.objects.annotate(rank=Window(Rank(), partition_by="maker", order_by=F("price").desc())).order_by("id").values_list("name", "rank")))
    see(list(Item.objects.filter(name="Acme 0").values_list("name").union(Item.objects.filter(price=2).values_list("name")).order_by("name")))


@checked
def related_objects(see):
    shop()
    see([(item.name, item.maker.name) for item in Item.objects.select_related("maker").order_by("id")])
    see([(maker.name, [item.name for item in maker.items.all()]) for maker in Maker.objects.prefetch_related(Prefetch("items", Item.objects.order_by("-id"))).order_by("id")])


@checked
def bulk_operations(see):
    shop()
    Maker.objects.bulk_create([Maker(name=f"m{n}") for n in range(1000)], batch_size=300)
    made = list(Maker.objects.filter(name__startswith="m").order_by("id"))
    for maker in made:
        maker.name += "x"
    see(Maker.objects.bulk_update(made, ["name"], batch_size=250), Maker.objects.filter(name__endswith="x").count())
    see(Maker.objects.in_bulk([1, 2])[2].name)


@checked
def upsert(see):
    make(Tag)
    Tag.objects.bulk_create([Tag(name="a"), Tag(name="b")])
    Tag.objects.bulk_create([Tag(name="a"), Tag(name="c")], ignore_conflicts=True)
    Tag.objects.bulk_create([Tag(name="c"), Tag(name="d")], update_conflicts=True, unique_fields=["name"], update_fields=["name"])
    see(list(Tag.objects.order_by("name").values_list("name", flat=True)))


@checked
def get_or_create(see):
    make(Tag)
    see(Tag.objects.get_or_create(name="a")[1], Tag.objects.get_or_create(name="a")[1], Tag.objects.update_or_create(name="a", defaults={"name": "b"})[1])


@checked
def atomic(see):
    shop()
    try:
        with transaction.atomic():
            Item.objects.all().delete()
            raise KeyError
    except KeyError:
        see(Item.objects.count())
    with transaction.atomic():
        transaction.on_commit(lambda: see("committed"))


@checked
def nested_atomic(see):
    shop()
    with transaction.atomic():
        try:
            with transaction.atomic():
                Item.objects.all().delete()
                raise KeyError
        except KeyError:
            see(Item.objects.count())


@checked
def select_for_update(see):
    shop()
    with transaction.atomic():
        see([item.name for item in Item.objects.select_for_update(of=("self",), skip_locked=True).select_related("maker").order_by("id")])
        see(Item.objects.select_for_update(nowait=True, no_key=True).filter(id=1).count())


@checked
def delete_with_related_objects(see):
    shop()
    see(Maker.objects.filter(name="Core").delete(), Item.objects.count())


@checked
def errors(see):
    make(Tag, Maker, Item)
    Tag.objects.create(name="a")
    refused(see, lambda: Tag.objects.create(name="a"))
    refused(see, lambda: Item.objects.create(maker_id=1, name="x", price=-1, made=datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)))
    refused(see, lambda: Tag.objects.create(name="x" * 50))


@checked
def all_fields(see):
    shop()
    item = Item.objects.get(name="Acme 0")
    item.blob, item.lasts, item.code = b"\x00\xff", datetime.timedelta(days=400, microseconds=3), uuid.UUID(int=5)
    item.save()
    item = Item.objects.get(code=uuid.UUID(int=5))
    see(bytes(item.blob), item.lasts, item.made, item.price)


@checked
def json_field(see):
    class Document(models.Model):
        body = models.JSONField()

        class Meta:
            app_label = "documents"

    make(Document)
    Document.objects.create(body={"a": {"b": [1, 2]}, "c": None})
    see(Document.objects.filter(body__a__b__0=1).count(), Document.objects.filter(body__has_key="c").count(), Document.objects.filter(body__contains={"c": None}).values_list("body__a", flat=True)[0])


@checked
def array_field(see):
    class Listing(models.Model):
        numbers = fields.ArrayField(models.IntegerField())
        words = fields.ArrayField(models.CharField(max_length=9), default=list)

        class Meta:
            app_label = "listings"

    make(Listing)
    Listing.objects.create(numbers=[1, 2, 3], words=["a", "b"])
    see(Listing.objects.filter(numbers__contains=[2], words__overlap=["b", "z"], numbers__len=3).count(), list(Listing.objects.values_list("numbers__0", "words")))


@checked
def aggregates_of_postgres(see):
    shop()
    see(Item.objects.aggregate(names=aggregates.StringAgg("name", ", ", ordering="-name"), stocks=aggregates.ArrayAgg("stock", distinct=True), any=aggregates.BoolOr(Q(price__gt=2))))


@checked
def changes_of_a_schema(see):
    make(Maker)
    Maker.objects.create(name="5")
    with connection.schema_editor() as editor:
        for field, name in ((models.IntegerField(default=7), "size"), (models.CharField(max_length=10, null=True), "note")):
            field.set_attributes_from_name(name)
            editor.add_field(Maker, field)
    with connection.schema_editor() as editor:
        wider = models.TextField(null=True)
        wider.set_attributes_from_name("name")
        editor.alter_field(Maker, Maker._meta.get_field("name"), wider)
        editor.alter_db_table(Maker, "shop_maker", "shop_producer")
    with connection.cursor() as cursor:
        cursor.execute("select * from shop_producer")
        see(cursor.fetchall(), [(one.name, one.null_ok) for one in connection.introspection.get_table_description(cursor, "shop_producer")])


@checked
def introspection(see):
    make(Maker, Item)
    with connection.cursor() as cursor:
        for name, constraint in sorted(connection.introspection.get_constraints(cursor, "shop_item").items()):
            see(name, constraint["columns"], constraint["primary_key"], constraint["unique"], constraint["check"], constraint["index"], constraint.get("orders"))
        see(connection.introspection.get_primary_key_column(cursor, "shop_item"), connection.introspection.get_sequences(cursor, "shop_item"))


@checked
def inspectdb(see):
    make(Maker, Item)
    out = io.StringIO()
    call_command("inspectdb", stdout=out)
    see(*out.getvalue().splitlines())


@checked
def sequences_are_reset(see):
    make(Tag)
    Tag.objects.create(id=50, name="a")
    from django.core.management.color import no_style

    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), [Tag]):
            cursor.execute(statement)
    see(Tag.objects.create(name="b").id)


@checked
def flush(see):
    call_command("migrate", verbosity=0)
    call_command("flush", interactive=False, verbosity=0)
    from django.contrib.auth.models import Permission

    see(Permission.objects.count())


@checked
def dumpdata_and_loaddata(see):
    import pathlib
    import tempfile

    from django.contrib.auth.models import Group

    call_command("migrate", verbosity=0)
    Group.objects.create(name="staff")
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "groups.json"
        call_command("dumpdata", "auth.group", output=str(file), verbosity=0)
        Group.objects.all().delete()
        call_command("loaddata", str(file), verbosity=0)
    see(list(Group.objects.values_list("name")))


@checked
def streaming_iterator(see):
    shop()
    see([item.name for item in Item.objects.order_by("id").iterator(chunk_size=2)])


@checked
def explain(see):
    shop()
    see(Item.objects.filter(id=1).explain(costs=False))


serve()
