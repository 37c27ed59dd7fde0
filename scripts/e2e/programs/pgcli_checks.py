"""pgcli: what it asks the catalog for its completions, its own commands, and its output."""

import pathlib
import tempfile

from pgcli.pgexecute import PGExecute

from harness import DATABASE, HOST, PORT, TOOLS, USER, check, command, keep, serve

SETUP = """create table people (id serial primary key, name text not null, height numeric);
create view tall as select * from people where height > 1.7;
create schema lab; create table lab.things (n int);
insert into people (name, height) values ('Ada', 1.65), ('Grace', null);"""


def executor():
    found = PGExecute(DATABASE, USER, "none", HOST, PORT)
    keep(found.conn)
    for statement in SETUP.split(";"):
        if statement.strip():
            list(found.run(statement))
    return found


@check
def schemata_and_search_path(see):
    found = executor()
    see([name for name in found.schemata() if name != "pg_toast"], found.search_path())


@check
def tables_and_views(see):
    found = executor()
    see(sorted(row for row in found.tables() if row[0] in ("public", "lab")), sorted(row for row in found.views() if row[0] == "public"))


@check
def columns(see):
    found = executor()
    see(*sorted(map(tuple, (row for row in found.table_columns() if row[0] in ("public", "lab")))))
    see(*sorted(map(tuple, (row for row in found.view_columns() if row[0] == "public"))))


@check
def foreign_keys(see):
    found = executor()
    list(found.run("create table c (p int references people)"))
    see(list(found.foreignkeys()))


@check
def functions(see):
    found = executor()
    see([row.func_name for row in found.functions() if row.schema_name == "public"])


@check
def datatypes(see):
    see([row for row in executor().datatypes() if row[0] in ("public", "lab")])


@check
def databases_and_casing(see):
    found = executor()
    see("postgres" in list(found.databases()), sorted(set(found.casing()) & {"people", "height"}))


@check
def view_definition(see):
    see(executor().view_definition("tall"))


@check
def statements(see):
    found = executor()
    for statement in ("select * from people order by id", "update people set height = 2", "selec", "\\dt", "\\d people", "\\dv", "\\dn", "\\l+ nothing"):
        for title, rows, headers, status, *_ in found.run(statement, exception_formatter=lambda error, *_: str(error).splitlines()[0]):
            see(title, list(rows) if rows is not None and not isinstance(rows, str) else rows, headers, status)


@check
def command_line(see):
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "config"
        file.write_text("[main]\nless_chatty = True\n")
        # A thread that reads the catalog meanwhile writes of its own failure, or is too late to.
        for line in command(pathlib.Path(TOOLS) / "pgcli", "--pgclirc", file, "--no-password", "-h", HOST, "-p", PORT, "-U", USER, "-d", DATABASE,
                            text_in="create table t (n int, s text);\ninsert into t values (1, 'x'), (2, null);\nselect * from t order by n;\nselect 1 / 0;\n", errors=False, PGPASSWORD="none", HOME=directory, PAGER="cat"):
            if not line.startswith(("Server", "Version", "Home", "Time", "Goodbye", "Using")):
                see(line.rstrip())


serve()
