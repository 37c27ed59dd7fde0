"""The other programs that come with PostgreSQL's client: dumps and what they restore, maintenance, databases and roles."""

import pathlib
import re
import tempfile

from harness import check, command, serve

SETUP = """create table kinds (id int primary key, name varchar(20) not null default 'x', price numeric(10,2) check (price > 0), tags text[]);
create index kinds_name on kinds (name); create view cheap as select name from kinds where price < 2;
insert into kinds values (1, 'a', 1.5, '{x,y}'), (2, 'b''c', 3, null); comment on table kinds is 'all of them';"""


def run(see, *words, **more):
    for line in command(*words, **more):
        # The versions that stand in a dump are the servers' own.
        if not line.startswith(("-- Dumped", "\\restrict", "\\unrestrict")):
            see(line.rstrip())


def psql(text):
    return command("psql", "-XAtq", text_in=text)


@check
def dump_as_text(see):
    psql(SETUP)
    run(see, "pg_dump", "--no-owner", "-t", "public.*")


@check
def dump_of_a_serial_column(see):
    psql("create table s (id serial primary key, n int); insert into s (n) values (5), (6);")
    run(see, "pg_dump", "--no-owner", "-t", "public.*")


@check
def dump_with_inserts(see):
    psql(SETUP)
    run(see, "pg_dump", "--no-owner", "--inserts", "--column-inserts", "-t", "kinds")


@check
def dump_of_the_schema_or_of_data(see):
    psql(SETUP)
    run(see, "pg_dump", "--no-owner", "--schema-only", "-t", "cheap")
    run(see, "pg_dump", "--no-owner", "--data-only")


def restores(name, *options, directory=False):
    def restored(see):
        psql(SETUP)
        with tempfile.TemporaryDirectory() as place:
            file = pathlib.Path(place) / "dump"
            run(see, "pg_dump", "--no-owner", *options, "-f", file)
            psql("drop schema public cascade; create schema public")
            run(see, "pg_restore", "--no-owner", "-d", "postgres", file)
        see(*psql("select * from kinds order by id; select * from cheap; select indexname from pg_indexes where tablename = 'kinds' order by 1"))

    restored.__name__ = name
    return check(restored)


restores("custom_format", "-Fc")
restores("tar_format", "-Ft")
restores("directory_format", "-Fd")
restores("directory_format_by_two_jobs", "-Fd", "-j", "2")


@check
def text_restores_in_one_transaction(see):
    psql(SETUP)
    text = "\n".join(command("pg_dump", "--no-owner"))
    psql("drop schema public cascade; create schema public")
    run(see, "psql", "-Xq", "-1", "-v", "ON_ERROR_STOP=1", text_in=text)
    see(*psql("select * from kinds order by id"))


@check
def dump_and_restore_of_a_serial_column(see):
    psql("create table s (id serial primary key, n int); insert into s (n) values (5), (6);")
    text = "\n".join(command("pg_dump", "--no-owner"))
    psql("drop table s")
    run(see, "psql", "-Xq", "-v", "ON_ERROR_STOP=1", text_in=text)
    see(*psql("insert into s (n) values (7) returning id"))


@check
def dumpall_of_globals(see):
    see(*sorted(line for line in command("pg_dumpall", "--globals-only", "--no-role-passwords") if line.startswith(("CREATE ROLE", "ALTER ROLE"))))


@check
def clean_dump(see):
    psql(SETUP)
    text = "\n".join(command("pg_dump", "--no-owner", "--clean", "--if-exists"))
    run(see, "psql", "-Xq", text_in=text)
    see(*psql("select count(*) from kinds"))


@check
def vacuumdb(see):
    psql(SETUP)
    run(see, "vacuumdb", "-z", "postgres")
    run(see, "vacuumdb", "-t", "kinds", "--analyze-in-stages", "postgres")


@check
def reindexdb(see):
    psql(SETUP)
    run(see, "reindexdb", "-t", "kinds", "postgres")


@check
def clusterdb(see):
    psql(SETUP)
    run(see, "clusterdb", "-t", "kinds", "postgres")


@check
def createdb_and_dropdb(see):
    run(see, "createdb", "checks_other")
    run(see, "dropdb", "checks_other")


@check
def createuser_and_dropuser(see):
    run(see, "createuser", "checks_role")
    run(see, "dropuser", "checks_role")


@check
def pg_isready(see):
    for line in command("pg_isready"):
        see(re.sub(r"^.* - ", "", line))


@check
def pg_amcheck(see):
    psql(SETUP)
    run(see, "pg_amcheck", "--install-missing", "-t", "kinds", "postgres")


@check
def pg_basebackup(see):
    with tempfile.TemporaryDirectory() as place:
        lines = command("pg_basebackup", "-D", pathlib.Path(place) / "copy", "-c", "fast", "-X", "none")
        see([line for line in lines if "error" in line.lower()], (pathlib.Path(place) / "copy" / "backup_manifest").exists())


serve()
