"""psql: its commands, variables, formats, transfers and error handling, each as a script that psql reads."""

import pathlib
import tempfile

from harness import check, command, serve

PEOPLE = """create table people (id int primary key, name text not null, born date, height numeric(4,2));
insert into people values (1, 'Ada', '1815-12-10', 1.65), (2, 'Grace', '1906-12-09', null), (3, 'O''Neil', null, 1.80);
"""


def psql(see, script, *options, **more):
    for line in command("psql", "-Xq", *options, text_in=script, **more):
        see(line.rstrip())


@check
def aligned_table(see):
    psql(see, PEOPLE + "select * from people order by id;")


@check
def expanded_output(see):
    psql(see, PEOPLE + "\\x on\nselect * from people order by id;\n\\x auto\nselect 1 as one;")


@check
def formats(see):
    query = "select id, name, born from people order by id;\n"
    for form in ("unaligned", "csv", "html", "latex", "asciidoc", "wrapped", "troff-ms", "latex-longtable"):
        psql(see, PEOPLE * (form == "unaligned") + f"\\pset format {form}\n{query}")


@check
def pset_null_border_footer(see):
    psql(see, PEOPLE + "\\pset null '(none)'\n\\pset border 2\n\\pset linestyle unicode\n\\pset footer off\nselect * from people order by id;")


@check
def variables(see):
    psql(see, PEOPLE + "\\set n 2\n\\set who 'O''Neil'\nselect name from people where id = :n;\n"
         "select :'who' as quoted, :\"who\" from (select 1 as \"O'Neil\") x;\n\\echo :n :{?n} :{?missing}\n\\unset n\n\\echo :n")


@check
def gset_and_if(see):
    psql(see, PEOPLE + "select count(*) as people, max(height) as tallest from people \\gset p_\n\\echo :p_people :p_tallest\n"
         "select :p_people > 2 as many \\gset\n\\if :many\n\\echo many\n\\elif false\n\\echo some\n\\else\n\\echo few\n\\endif")


@check
def gexec(see):
    psql(see, "select format('create table made_%s (n int)', n) from generate_series(1, 3) n \\gexec\n"
         "select relname from pg_class where relname like 'made_%' order by 1;")


@check
def gdesc(see):
    psql(see, PEOPLE + "select id, name, height, born + 1 as next, array[1] as list from people \\gdesc")


@check
def gx_and_g_with_options(see):
    psql(see, PEOPLE + "select * from people where id = 1 \\gx\nselect name from people order by id \\g (format=csv tuples_only=on)")


@check
def bind_by_prepare(see):
    psql(see, PEOPLE + "prepare by_id(int) as select name from people where id = $1;\nexecute by_id(2);\ndeallocate by_id;\nexecute by_id(2);")


@check
def watch(see):
    # This version's \\watch goes on until its query fails.
    psql(see, "create sequence ticks;\n\\t\nselect 10 / (3 - nextval('ticks')) \\watch 0.01")


@check
def crosstabview(see):
    psql(see, "create table sales (region text, quarter int, amount int);\ninsert into sales values ('north', 1, 10), ('north', 2, 20), ('south', 2, 5);\n"
         "select region, quarter, amount from sales order by 1, 2 \\crosstabview\nselect region, quarter, amount from sales \\crosstabview quarter region amount")


@check
def copy_from_and_to_a_file(see):
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "people.csv"
        file.write_text('id,name,born,height\n7,"comma, quoted",2000-01-01,\n8,plain,,1.5\n')
        psql(see, PEOPLE + f"\\copy people from '{file}' with (format csv, header)\n\\copy (select id, name, height from people order by id) to '{file}' with (format csv, header, force_quote (name))")
        see(file.read_text())


@check
def copy_stdin_and_stdout(see):
    psql(see, PEOPLE + "copy people (id, name) from stdin;\n9\ttab\\tand\\\\slash\n10\t\\N\n\\.\ncopy people from stdin (delimiter '|', null '-');\n11|pipe|-|-\n\\.\ncopy (select * from people order by id) to stdout;")


@check
def copy_binary(see):
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "people.bin"
        psql(see, PEOPLE + f"\\copy people to '{file}' with binary\ndelete from people;\n\\copy people from '{file}' with binary\nselect * from people order by id;")
        see(len(file.read_bytes()))


@check
def verbosity(see):
    for form in ("terse", "default", "sqlstate"):
        psql(see, PEOPLE * (form == "terse") + f"\\set VERBOSITY {form}\nselect no_such from people;\ninsert into people values (1, 'Ada');\nselect 1 +;")


@check
def errverbose(see):
    lines = command("psql", "-Xq", text_in=PEOPLE + "insert into people values (1, null);\n\\errverbose")
    # The place in the server's source is its own.
    for line in lines:
        if not line.startswith("LOCATION"):
            see(line)


@check
def on_error_stop(see):
    psql(see, "select 1;\nselect 1 / 0;\nselect 2;", "-v", "ON_ERROR_STOP=1")
    psql(see, "select 1;\nselect 1 / 0;\nselect 2;")


@check
def on_error_rollback(see):
    psql(see, PEOPLE + "begin;\ninsert into people values (4, 'Four');\ninsert into people values (4, 'again');\ninsert into people values (5, 'Five');\ncommit;\nselect id from people order by id;",
         "-v", "ON_ERROR_ROLLBACK=1")


@check
def savepoints(see):
    psql(see, PEOPLE + "begin;\nsavepoint a;\ndelete from people;\nrollback to a;\nselect count(*) from people;\nrelease a;\nrelease a;\nrollback;")


@check
def autocommit_off(see):
    psql(see, PEOPLE + "\\set AUTOCOMMIT off\ndelete from people;\nrollback;\nselect count(*) from people;\ncommit;")


@check
def single_transaction(see):
    psql(see, "create table a (n int);\ninsert into a values (1);\nselect 1 / 0;", "-1", "-v", "ON_ERROR_STOP=1")
    psql(see, "select to_regclass('a');", "-At")


@check
def describe_a_table(see):
    psql(see, "create table kinds (id serial primary key, name varchar(20) not null default 'x', price numeric(10,2) check (price > 0), tags text[], made timestamptz default now());\n"
         "create index on kinds (name);\ncreate unique index kinds_price on kinds (price desc);\n\\d kinds\n\\d+ kinds\n\\d kinds_price")


@check
def describe_foreign_keys(see):
    psql(see, "create table parent (id int primary key);\ncreate table child (id int, parent int references parent on delete cascade);\n\\d parent\n\\d child")


@check
def list_relations(see):
    psql(see, PEOPLE + "create view tall as select * from people where height > 1.7;\ncreate index on people (name);\n\\dt\n\\dv\n\\di\n\\d\n\\dt pub*.peo*\n\\dt missing\ncreate schema other;\n\\dn oth*")


@check
def view_definition(see):
    psql(see, PEOPLE + "create view tall as select id, upper(name) as name from people where height > 1.7 order by born;\n\\d+ tall\n\\sv tall")


@check
def list_functions(see):
    psql(see, "\\df pg_catalog.upper(text)\n\\df pg_catalog.date_trunc\n\\da pg_catalog.count\n\\df pg_catalog.no_such")


@check
def list_types(see):
    psql(see, "\\dT pg_catalog.int?\n\\dT+ pg_catalog.bool\n\\dT pg_catalog.text")


@check
def list_operators_and_casts(see):
    psql(see, "\\do pg_catalog.^@\n\\dC date\n\\dC bool")


@check
def list_privileges_and_comments(see):
    psql(see, PEOPLE + "comment on table people is 'who';\ncomment on column people.name is 'how called';\n\\dt+ people\n\\d+ people\n\\dd\n\\dp people\n\\du clearway")


@check
def sequences(see):
    psql(see, "create sequence steps increment 5 minvalue 10 cycle maxvalue 20;\nselect nextval('steps'), nextval('steps'), nextval('steps'), nextval('steps');\n\\d steps\n\\ds\ncreate table t (id serial);\n\\d t_id_seq")


@check
def enums_and_domains(see):
    psql(see, "create type mood as enum ('sad', 'ok');\ncreate domain positive as int check (value > 0);\n\\dT+ mood\n\\dD positive\nselect 'sad'::mood < 'ok', (-1)::positive;")


@check
def functions_and_do(see):
    psql(see, "create function twice(n int) returns int language sql immutable as 'select n * 2';\nselect twice(4);\n\\sf twice\ndo $$ begin raise notice 'hello'; end $$;")


@check
def settings(see):
    psql(see, "show work_mem;\nset work_mem = '8MB';\nshow work_mem;\nselect current_setting('work_mem');\nreset work_mem;\nshow work_mem;\nshow no_such;\nset statement_timeout = 'x';")


@check
def include_and_output_files(see):
    with tempfile.TemporaryDirectory() as directory:
        script, output = pathlib.Path(directory) / "a.sql", pathlib.Path(directory) / "o"
        script.write_text("\\echo included :x\nselect :x * 2;\n")
        psql(see, f"\\set x 21\n\\i {script}\n\\o {output}\nselect 'in the file';\n\\o\nselect 'outside';\n\\w {output}.q\n\\! cat {output}")


@check
def conninfo_and_prompts(see):
    psql(see, "\\echo :DBNAME :USER :ENCODING\n\\encoding\nset client_encoding = 'LATIN1';\n\\encoding\nselect 'é';\nselect session_user, current_schema();", PGCLIENTENCODING="UTF8")


@check
def commands_and_tags(see):
    for line in command("psql", "-X", text_in=PEOPLE + "update people set height = 2;\ndelete from people where id = 3;\nselect * into tall from people;\ncreate table more as select 1 as a;\ntruncate more;\nbegin;\nend;\ndrop table more, tall;"):
        see(line)


@check
def last_result_variables(see):
    psql(see, PEOPLE + "select * from people;\n\\echo :ROW_COUNT :SQLSTATE :ERROR\nselect 1 / 0;\n\\echo :ROW_COUNT :SQLSTATE :ERROR :LAST_ERROR_MESSAGE")


@check
def several_statements_in_one_query(see):
    for line in command("psql", "-X", "-c", "create table a (n int); insert into a values (1), (2); select * from a", "-c", "select 1 / 0; select 2", "-c", "select count(*) from a"):
        see(line)


@check
def fetch_count(see):
    psql(see, "\\set FETCH_COUNT 3\n\\pset tuples_only\nselect n, n * n from generate_series(1, 8) n;")


@check
def cursors(see):
    psql(see, PEOPLE + "begin;\ndeclare c scroll cursor for select id, name from people order by id;\nfetch 2 from c;\nfetch backward 1 from c;\nfetch all c;\nmove first in c;\nfetch relative 1 from c;\nclose c;\nfetch c;\nrollback;")


@check
def explain_text(see):
    psql(see, PEOPLE + "explain (costs off) select * from people where id = 1;\nexplain (costs off) select count(*) from people;")


serve()
