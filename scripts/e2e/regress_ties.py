"""Statements of PostgreSQL's regression files whose answer depends on the order of rows that tie.

A sort of Clearway keeps tied rows in the order in which they came, whatever memory it has (rule S1 of
crates/engine/src/spill/sorter.rs); PostgreSQL's quicksort does not. Each of these orders rows by a key that ties and
then shows which of them came first. An entry is how its statement begins, comments left out, with an index that has
these keys: PostgreSQL asked again, and kept from sorting, reads the rows by it, where those that tie come in the order
of the table. Where no index has the keys it is a pair instead, a part of the statement and what takes its place when both
servers are asked again: then the ties decide nothing that is shown.
"""

EMPSALARY = "empsalary (enroll_date)"

TIES = {
    "inet": [("SELECT * FROM inet_tbl WHERE i < '192.168.1.0/24'::cidr ORDER BY i", "inet_tbl (i)")],
    # The rows of a join without an order come in any.
    "json": [
        ("SELECT json_agg(q) FROM ( SELECT $$a$$ || x AS b, y AS c,", ("json_agg(q)", "json_agg(q ORDER BY b, c)")),
        (
            "SELECT array_to_json(array_agg(q),false) FROM ( SELECT $$a$$ || x AS b, y AS c,",
            ("array_agg(q)", "array_agg(q ORDER BY b, c)"),
        ),
    ],
    "jsonb": [("SELECT jsonb_agg(q) FROM ( SELECT $$a$$ || x AS b, y AS c,", ("jsonb_agg(q)", "jsonb_agg(q ORDER BY b, c)"))],
    "window": [
        (
            "SELECT depname, empno, salary, sum(salary) OVER (PARTITION BY depname) FROM empsalary ORDER BY depname, salary",
            "empsalary (depname, salary)",
        ),
        (
            "SELECT depname, empno, salary, rank() OVER w FROM empsalary WINDOW w AS (PARTITION BY depname ORDER BY salary) ORDER",
            # The order of the answer itself ties.
            ("ORDER BY rank() OVER w", "ORDER BY rank() OVER w, empno"),
        ),
        ("SELECT last_value(four) OVER (ORDER BY ten), ten, four FROM tenk1 WHERE unique2 < 10", "tenk1 (ten)"),
        *(
            (f"SELECT {function}(unique1) over (ORDER BY four rows between current row and 2 following exclude", "tenk1 (four)")
            for function in ("first_value", "last_value")
        ),
        (
            "SELECT first_value(unique1) over w, nth_value(unique1, 2) over w AS nth_2, last_value(unique1) over w, unique1, four",
            "tenk1 (four)",
        ),
        (
            "select x, y, first_value(y) over w, last_value(y) over w from (select x, x as y from generate_series(1,5) as x",
            # Two rows have NULL for x: what their frames hold is the same in either order.
            ("first_value(y) over w, last_value(y) over w", "min(y) over w, max(y) over w"),
        ),
        *(
            (f"select {begin}", EMPSALARY)
            for begin in (
                "first_value(salary) over(order by enroll_date groups between 1 preceding and 1 following), lead(salary)",
                "last_value(salary) over(order by enroll_date groups between 1 preceding and 1 following), lag(salary)",
                "first_value(salary) over(order by enroll_date groups between 1 following and 3 following exclude current row)",
                "last_value(salary) over(order by enroll_date groups between 1 following and 3 following exclude group)",
                "first_value(salary) over(order by enroll_date range between unbounded preceding and '1 year'::interval following",
            )
        ),
        (
            "SELECT * FROM (SELECT *, count(1) OVER (PARTITION BY depname || '') c1, row_number() OVER (PARTITION BY depname) rn,",
            # The first row of a partition without an order is any of them.
            ("SELECT * FROM (SELECT *,", "SELECT depname, c1, rn, c2, c3 FROM (SELECT *,"),
        ),
        *(
            (
                f"select id, {column}, first_value(id) over w, last_value(id) over w from datetimes window w as (order by {column} desc",
                f"datetimes ({column} desc)",
            )
            for column in ("f_time", "f_timetz", "f_interval", "f_timestamptz", "f_timestamp")
        ),
    ],
}


def tie(file, bare):
    """The entry of a statement of a file, without comments and with single blanks; `None` if it is none of these."""
    return next((entry for entry in TIES.get(file, ()) if bare.startswith(entry[0])), None)
