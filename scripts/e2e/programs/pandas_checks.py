"""pandas: frames to tables and back, in its ways of inserting, with types, chunks and parameters."""

import io

import pandas
import sqlalchemy as sa

from harness import URL, check, keep, serve


def engine():
    made = sa.create_engine(f"postgresql+psycopg2://{URL}")
    keep(type("Closing", (), {"close": made.dispose})())
    return made


def frame():
    return pandas.DataFrame({
        "n": [1, 2, 3], "x": [1.5, None, -2.25], "s": ["a", "é'", None], "b": [True, False, True],
        "t": pandas.to_datetime(["2024-02-29 12:00", None, "2000-01-01 00:00"]), "d": pandas.to_timedelta(["1 days", "2 days", "3 days"]).total_seconds(),
    })


@check
def to_and_from_a_table(see):
    made = engine()
    see(frame().to_sql("frames", made, index=False))
    found = pandas.read_sql_query("select * from frames order by n", made)
    see(found.to_csv(), found.dtypes.to_dict())


@check
def replace_and_append(see):
    made = engine()
    for how in ("replace", "append", "replace", "append"):
        frame().to_sql("frames", made, if_exists=how, index=False)
    see(pandas.read_sql_query("select count(*) from frames", made).iloc[0, 0])
    try:
        frame().to_sql("frames", made, if_exists="fail")
    except ValueError as error:
        see(str(error))


@check
def many_rows_in_one_insert(see):
    made = engine()
    pandas.DataFrame({"n": range(5000), "s": "x"}).to_sql("many", made, index=False, method="multi", chunksize=1000)
    see(pandas.read_sql_query("select count(*), sum(n) from many", made).values.tolist())


@check
def rows_by_copy(see):
    def by_copy(table, connection, keys, rows):
        text = io.StringIO()
        pandas.DataFrame(rows, columns=keys).to_csv(text, index=False, header=False)
        text.seek(0)
        with connection.connection.cursor() as cursor:
            cursor.copy_expert(f"copy {table.name} ({', '.join(keys)}) from stdin with csv", text)

    made = engine()
    pandas.DataFrame({"n": range(1000), "s": "y"}).to_sql("copied", made, index=False, method=by_copy)
    see(pandas.read_sql_query("select count(*), min(s) from copied", made).values.tolist())


@check
def index_and_types(see):
    made = engine()
    frame().set_index("n").to_sql("frames", made, index=True, index_label="key", dtype={"x": sa.Numeric(8, 2), "s": sa.String(5)})
    for row in pandas.read_sql_query("select column_name, data_type, numeric_precision, character_maximum_length from information_schema.columns where table_name = 'frames' order by ordinal_position", made).values.tolist():
        see(row)


@check
def parameters_and_dates(see):
    made = engine()
    frame().to_sql("frames", made, index=False)
    found = pandas.read_sql_query(sa.text("select n, t from frames where n > :least order by n"), made, params={"least": 1}, parse_dates=["t"], index_col="n")
    see(found.to_csv(), found.dtypes.to_dict())


@check
def chunks(see):
    made = engine()
    frame().to_sql("frames", made, index=False)
    see([len(part) for part in pandas.read_sql_query("select * from frames", made, chunksize=2)])


@check
def a_whole_table(see):
    made = engine()
    frame().to_sql("frames", made, index=False)
    see(pandas.read_sql_table("frames", made, columns=["n", "s"]).sort_values("n").to_csv())


@check
def schemas(see):
    made = engine()
    with made.begin() as connection:
        connection.exec_driver_sql("create schema lab")
    frame().to_sql("frames", made, schema="lab", index=False)
    see(pandas.read_sql_query("select sum(n) from lab.frames", made).iloc[0, 0])


@check
def pivoted_in_the_database(see):
    made = engine()
    pandas.DataFrame({"k": list("aabbc"), "q": [1, 2, 1, 2, 1], "v": [1, 2, 3, 4, 5]}).to_sql("sales", made, index=False)
    see(pandas.read_sql_query("select k, sum(v) filter (where q = 1) as q1, sum(v) filter (where q = 2) as q2 from sales group by rollup (k) order by k nulls last", made).to_csv())


serve()
