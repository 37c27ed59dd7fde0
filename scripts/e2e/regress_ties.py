"""Statements of PostgreSQL's regression files whose answer depends on the order of rows that tie.

A sort of Clearway keeps tied rows in the order in which they came, whatever memory it has (rule S1 of
crates/engine/src/spill/sorter.rs); PostgreSQL's quicksort does not. Each of these orders rows by a key that ties and
then shows which of them came first. An entry is the file and how its statement begins, comments left out.
"""

TIES = {
    "window": [
        "SELECT depname, empno, salary, sum(salary) OVER (PARTITION BY depname) FROM empsalary ORDER BY depname, salary",
        "SELECT depname, empno, salary, rank() OVER w FROM empsalary WINDOW w AS (PARTITION BY depname ORDER BY salary) ORDER",
        "SELECT last_value(four) OVER (ORDER BY ten), ten, four FROM tenk1 WHERE unique2 < 10",
        "SELECT first_value(unique1) over (ORDER BY four rows between current row and 2 following exclude current row)",
        "SELECT first_value(unique1) over (ORDER BY four rows between current row and 2 following exclude group)",
        "SELECT last_value(unique1) over (ORDER BY four rows between current row and 2 following exclude current row)",
        "SELECT last_value(unique1) over (ORDER BY four rows between current row and 2 following exclude group)",
        "SELECT last_value(unique1) over (ORDER BY four rows between current row and 2 following exclude ties)",
        "SELECT first_value(unique1) over w, nth_value(unique1, 2) over w AS nth_2, last_value(unique1) over w, unique1, four",
        "select x, y, first_value(y) over w, last_value(y) over w from (select x, x as y from generate_series(1,5) as x",
        "select first_value(salary) over(order by enroll_date groups between 1 preceding and 1 following), lead(salary)",
        "select last_value(salary) over(order by enroll_date groups between 1 preceding and 1 following), lag(salary)",
        "select first_value(salary) over(order by enroll_date groups between 1 following and 3 following exclude current row)",
        "select last_value(salary) over(order by enroll_date groups between 1 following and 3 following exclude group)",
        "SELECT * FROM (SELECT *, count(1) OVER (PARTITION BY depname || '') c1, row_number() OVER (PARTITION BY depname) rn,",
        "select first_value(salary) over(order by enroll_date range between unbounded preceding and '1 year'::interval following",
        *(
            f"select id, {column}, first_value(id) over w, last_value(id) over w from datetimes window w as (order by {column} desc"
            for column in ("f_time", "f_timetz", "f_interval", "f_timestamptz", "f_timestamp")
        ),
    ],
}


def is_tie(file, bare):
    """Whether a statement of a file, without comments and with single blanks, is one of these."""
    return any(bare.startswith(begin) for begin in TIES.get(file, ()))
