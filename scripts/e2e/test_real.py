"""real (float4) against PostgreSQL: the same expressions over edge values and random ones, each answer compared as text
and some as bytes."""

import os
import random
import struct

from peer import BesidePostgres

SEED = int(os.environ.get("SEED", "4"))

EDGES = [
    "0", "-0", "1", "-1", "0.1", "0.5", "1.5", "2.5", "-2.5", "3.4028235e38", "-3.4028235e38", "1.17549435e-38", "1e-45",
    "123456", "1234567", "999999.9", "1e6", "0.0001", "0.00001", "16777216", "16777217", "33554432", "1e10", "32767.5",
    "-32768.5", "2147483647", "2147483648", "9.223372e18", "NaN", "Infinity", "-Infinity", "8388608.5", "0.3333333333",
]
TEXTS = ["1e39", "-1e39", "1e-46", "0e500", " 42 ", "+7", ".5", "5.", "1e", "", " ", ".", "1..2", "abc", "- 1", "inf", "-inf",
         "+infinity", "nan", "1 2", "3.4028236e38", "3.40282356e38", "7e-46", "7.1e-46", "1.00000005960464477539062500001"]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} = {}", "{} < {}", "{} <> {}", "{} >= {}", "greatest({}, {})",
          "coalesce({}, {})", "nullif({}, {})", "power({}, {})", "{} is distinct from {}", "{} in ({}, 5)", "{} % {}",
          "case when true then {} else {} end", "mod({}, {})", "{} in ({})"]
UNARY = ["- {}", "abs({})", "sign({})", "ceil({})", "floor({})", "round({})", "trunc({})", "sqrt({})", "exp({})", "ln({})",
         "{}::text", "{}::numeric", "{}::numeric(10,3)", "{}::int2", "{}::int4", "{}::int8", "{}::float8", "{}::varchar(4)",
         "{}::bool", "{}::oid", "{}::date", "round({}, 2)"]
OTHERS = ["1::int2", "3::int4", "7::int8", "0.1", "1e300", "2.5::float8", "1e300::float8", "'1.5'", "null", "0"]


def real(text):
    return f"'{text}'::real"


class Real(BesidePostgres):
    def setUp(self):
        print(f"SEED={SEED}", end=" ", flush=True)
        self.draw = random.Random(SEED)

    def bits(self):
        """A real of any exponent, as text that reads back as it."""
        value, = struct.unpack("<f", struct.pack("<I", self.draw.randrange(1 << 32)))
        return "NaN" if value != value else repr(value).replace("inf", "Infinity")

    def values(self, count):
        return EDGES + [self.bits() for _ in range(count)] + [f"{self.draw.uniform(-999, 999):.3g}" for _ in range(count)]

    def test_texts(self):
        self.assert_same([f"select {real(text)}" for text in TEXTS + self.values(150)])
        self.assert_same([f"select {real(text)}" for text in self.values(20)], binary=True)

    def test_names_of_the_type(self):
        kinds = ["real", "float4", "float(1)", "float(24)", "float(25)", "float(53)", "float", "float(0)", "float(54)"]
        self.assert_same([f"select '0.1'::{kind} + 0" for kind in kinds] + [f"select cast(0.1 as {kind})" for kind in kinds]
                         + ["select real '1.5'", "select float4 '1.5'"])

    def test_two_arguments(self):
        values = self.values(20)
        draw = self.draw.choice
        statements = []
        for form in BINARY:
            for _ in range(25):
                one, other = real(draw(values)), draw((real(draw(values)), draw(OTHERS)))
                statements.append("select " + form.format(*self.draw.sample((one, other), 2)))
        self.assert_same(statements)

    def test_one_argument(self):
        self.assert_same([f"select {form.format(real(value))}" for value in self.values(15) for form in self.draw.sample(UNARY, 12)])

    def test_casts_to_it(self):
        numbers = ["1e39", "-1e39", "1e-46", "16777217", "0.1", "1.00000005960464477539062500001", "123456789012345678901234567890",
                   "NaN", "Infinity", "3.4028235677973366e38", "3.40282356e38"]
        self.assert_same([f"select '{number}'::{kind}::real" for number in numbers for kind in ("numeric", "float8", "text")]
                         + [f"select {number}::{kind}::real" for kind in ("int2", "int4", "int8") for number in (-32768, 0, 32767)]
                         + ["select 16777217::int4::real", "select 9223372036854775807::real", "select true::real"])

    def test_tables_indexes_and_aggregates(self):
        self.both("create table r (k int primary key, g int, v real, w float4 not null default 0.1, d float8)")
        rows = []
        for k in range(400):
            value = self.draw.choice(EDGES) if k % 3 == 0 else f"{self.draw.uniform(-1e4, 1e4):.4g}"
            rows.append(f"({k}, {k % 7}, {'null' if k % 41 == 0 else real(value)}, {real(k * 7919 % 1000 / 8)}, {k} / 8.0)")
        self.both("insert into r values " + ", ".join(rows))
        self.both("insert into r (k, g, v) values (1000, 9, 0.1), (1001, 9, 1.5::float8), (1002, 9, 3), (1003, 9, '4.5')")
        self.both("create index r_v on r (v)")
        self.both("create unique index r_wk on r (w desc, k)")
        finite = "where v > '-1e30' and v < '1e30'"
        self.assert_same(
            ["select k, v from r order by v, k", "select k, w from r order by w desc, k", "select v, w from r where k = 1000",
             "select v, count(*) from r group by v order by v", "select count(distinct v) from r",
             "select k from r where v between -1 and 1.5 order by k", "select k from r where v > 1e20 order by k",
             "select k from r where v = '1.5' order by k", "select k from r where v = 0.1 order by k",
             "select k from r where v = 0.1::real order by k", "select k from r where v in (0.1, 1.5, 'NaN') order by k",
             "select k from r where v in (0.1) order by k", "select k from r where w = d order by k",
             "select k from r where v is null order by k", "select k from r where v < '-0' order by v, k limit 7",
             "select g, min(v), max(v) from r group by g order by g", "select g, avg(v) from r where v is null group by g order by g",
             "select distinct w from r order by w"]
            + ["select g, sum(w), avg(w) from r group by g order by g", f"select sum(v), avg(v) from r {finite}"]
            + [f"select {name}(w) from r" for name in ("stddev", "stddev_pop", "variance", "var_pop")]
            + ["select sum(v) from r", "select avg(v) from r",
               "select sum(v) from r where v = '3.4028235e38' or k = 9", "update r set v = v * 2 where k < 50",
               "update r set v = 1e39 where k = 1", "update r set v = 1e300::float8 where k = 1", "select k, v from r where k < 50 order by k"]
        )
        self.assert_same(["select v, w, v::float8 from r order by k"], binary=True)

    def test_sums_that_overflow(self):
        self.both("create table s (v real, d float8)")
        self.both("insert into s values ('3e38', '1.7e308'), ('3e38', '1.7e308')")
        self.assert_same(["select sum(v) from s", "select avg(v) from s", "select sum(d) from s", "select avg(d) from s"])

    def test_parameters_and_descriptions(self):
        for sql in ("select $1::real", "select $1::real + 1", "select v from p where v = $1"):
            if "from p" in sql:
                self.both("create table p (v real)")
                self.both("insert into p values (0.1), ('NaN')")
            answers = []
            for connection in (self.ours, self.theirs):
                for value, format in ((b"0.1", 0), (struct.pack(">f", 0.1), 1), (b"NaN", 0), (b"x", 0), (b"123", 1)):
                    for shown in (0, 1):
                        result = connection.pgconn.exec_params(sql.encode(), [value], [0], [format], shown)
                        rows = [result.get_value(row, 0) for row in range(result.ntuples)]
                        answers.append((result.status, [result.ftype(c) for c in range(result.nfields)],
                                        [result.fsize(c) for c in range(result.nfields)], rows))
            half = len(answers) // 2
            self.assertEqual(answers[:half], answers[half:], sql)

    def test_copy(self):
        self.both("create table c (v real, w real)")
        lines = "".join(f"{value}\t{self.bits()}\n" for value in EDGES) + "\\N\t1\n"
        shown = []
        for connection in (self.ours, self.theirs):
            with connection.cursor() as cursor:
                with cursor.copy("copy c from stdin") as copy:
                    copy.write(lines)
                with cursor.copy("copy c to stdout") as copy:
                    shown.append(b"".join(bytes(part) for part in copy))
        self.assertEqual(*shown)
