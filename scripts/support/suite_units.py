"""The units in which scripts/driver-suites runs the tests of Django and SQLAlchemy, and the command of each."""

import dataclasses
import re
import sys

from . import suite_sources

# Django's apps whose tests use a database. Left out: those of pages, forms, files, mail and the admin's browser tests, whose
# queries are few and plain.
DJANGO = """
aggregation aggregation_regress annotations async backends basic bulk_create cache
composite_pk constraints contenttypes_tests custom_columns custom_lookups custom_managers custom_methods
custom_migration_operations custom_pk datatypes dates datetimes db_functions db_typecasts db_utils defer defer_regress delete
delete_regress distinct_on_fields empty empty_models expressions expressions_case expressions_window extra_regress
field_defaults field_subclassing filtered_relation fixtures fixtures_model_package fixtures_regress force_insert_update
foreign_object from_db_value generic_relations generic_relations_regress get_earliest_or_latest get_object_or_404
get_or_create indexes inspectdb introspection known_related_objects lookup m2m_and_m2o m2m_intermediary m2m_multiple
m2m_recursive m2m_regress m2m_signals m2m_through m2m_through_regress m2o_recursive managers_regress many_to_many many_to_one
many_to_one_null max_lengths migrate_signals migration_test_data_persistence migrations migrations2 model_enums model_fields
model_forms model_formsets model_indexes model_inheritance model_inheritance_regress model_options model_package model_regress
multiple_database mutually_referential nested_foreign_keys null_fk null_fk_ordering null_queries one_to_one or_lookups
order_with_respect_to ordering pagination postgres_tests prefetch_related properties proxy_model_inheritance proxy_models
queries queryset_pickle raw_query reserved_names reverse_lookup save_delete_hooks schema select_for_update select_related
select_related_onetoone select_related_regress serializers sessions_tests signals sites_tests string_lookup swappable_models
test_utils timezones transaction_hooks transactions unmanaged_models update update_only_fields validation xor_lookups
""".split()

# SQLAlchemy's files and folders, by the names of their units, as patterns. No unit may take longer than driver_suites.PATIENCE:
# the folders of thousands of tests are several.
SQLALCHEMY = {
    "dialect/postgresql": "test/dialect/postgresql",
    "dialect/suite": "test/dialect/test_suite.py",
    "engine": "test/engine",
    "sql": "test/sql",
    "orm/declarative": "test/orm/declarative",
    "orm/dml": "test/orm/dml",
    "orm/inheritance": "test/orm/inheritance",
    **{f"orm/{letters}": f"test/orm/test_[{letters}]*.py" for letters in ("a-b", "c-d", "e-k", "l-o", "p-q", "r", "s-t", "u-z")},
    "ext/asyncio": "test/ext/asyncio",
    "ext/declarative": "test/ext/declarative",
    "ext/others": "test/ext/test_*.py",
}


@dataclasses.dataclass(frozen=True)
class Unit:
    """An app, a file or a folder; `path` is what the suite calls it."""

    suite: str
    name: str
    path: str

    def schemas(self):
        """The schemas that the suite expects beside `public`."""
        return ["test_schema", "test_schema_2"] if self.suite == "sqlalchemy" else []

    def extensions(self):
        """The extensions that the suite would make before its first test."""
        if self.suite == "sqlalchemy":
            return ["citext", "hstore"]
        return ["pgcrypto"] if self.path == "db_functions" else []

    def source(self):
        return suite_sources.folder({"django": "Django", "sqlalchemy": "SQLAlchemy"}[self.suite])

    def modules(self):
        """The folders where the tests' process looks for modules first."""
        return [self.source()] if self.suite == "django" else [self.source() / "lib"]

    def directory(self):
        return self.source() / "tests" if self.suite == "django" else self.source()

    def command(self, python, url, only):
        """Runs the unit's tests; only those whose names contain a word, if one is given."""
        if self.suite == "django":
            chosen = ["-k", only] if only else []
            options = ["--settings=suite_django", "--keepdb", "--noinput", "--parallel", "1"]
            return [python, "runtests.py", *options, *chosen, self.path]
        chosen = ["-k", only] if only else []
        options = ["-p", "suite_sqlalchemy", "-p", "no:cacheprovider", "--maxfail=1000000", "-q", "--dburi", url]
        paths = [path for path in sorted(self.directory().glob(self.path)) if is_for_this_python(path)]
        return [python, "-m", "pytest", *options, *chosen, *(path.relative_to(self.directory()) for path in paths)]


def is_for_this_python(path):
    """False for a file of SQLAlchemy's tests in the syntax of a later Python: its name ends with the version."""
    later = re.search(r"_py(\d)(\d+)$", path.stem)
    return later is None or sys.version_info >= tuple(map(int, later.groups()))


def all_units():
    return [
        *(Unit("django", f"django/{app}", app) for app in DJANGO),
        *(Unit("sqlalchemy", f"sqlalchemy/{name}", path) for name, path in SQLALCHEMY.items()),
    ]


def names():
    return [unit.name for unit in all_units()]


def chosen(words):
    """The units whose names contain one of the words; all if there is none."""
    return [unit for unit in all_units() if not words or any(word in unit.name for word in words)]
