"""What the programs of Python's drivers share: the values that go both ways, and the server's address."""

import datetime
import decimal
import os

PORT = int(os.environ["PGPORT"])
USER = os.environ["PGUSER"]
DATABASE = os.environ["PGDATABASE"]
SOCKET = os.environ["PGHOST"]

# The columns of the table that values are sent to and read back from, and the values.
COLUMNS = "i int, l bigint, t text, n numeric, d date, ts timestamp, tz timestamptz, b boolean, f double precision, nothing text"
VALUES = (
    7,
    2**40,
    "naïve 🦀",
    decimal.Decimal("12345.678"),
    datetime.date(2024, 2, 29),
    datetime.datetime(2024, 2, 29, 12, 30, 15, 250000),
    datetime.datetime(2024, 2, 29, 12, 30, 15, tzinfo=datetime.timezone.utc),
    True,
    2.5,
    None,
)


def equal(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"
