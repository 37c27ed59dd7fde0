"""numeric against PostgreSQL: the same expressions over edge values and random ones, each answer compared as text."""

import os
import random

from peer import BesidePostgres, answer

SEED = int(os.environ.get("SEED", "8"))

EDGES = [
    "0", "0.00", "1", "-1", "1.0", "2", "3", "-3", "7", "10", "0.1", "0.5", "-0.5", "0.05", "1.5", "2.5", "-2.5", "0.45",
    "9999", "10000", "10001", "0.9999", "0.0001", "0.00010", "99999999", "100000000", "1234.5678", "-1234.56785",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "-9223372036854775809",
    "170141183460469231731687303715884105727", "-170141183460469231731687303715884105728",
    "79228162514264337593543950335", "0.0000000000000000000000000001", "1e-20", "1e-40", "3.7e-30", "1e20", "1e40", "-5e39",
    "12345678901234567890.12345678901234567890", "1e1000", "1e-1000", "NaN", "Infinity", "-Infinity",
    "0.9", "1.1", "1.0000000000000000001", "0.99999999999999999999", "2147483647", "2147483648", "32767.5", "-32768.4",
]
FAR = ["1e131071", "-9.99e131071", "1e-16383", "123e-16383"]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} % {}", "div({}, {})", "mod({}, {})", "gcd({}, {})", "lcm({}, {})"]
ORDER = ["{} = {}", "{} < {}", "{} >= {}", "{} is distinct from {}", "greatest({}, {})"]
UNARY = ["- {}", "abs({})", "sign({})", "ceil({})", "floor({})", "round({})", "trunc({})", "sqrt({})", "scale({})",
         "min_scale({})", "trim_scale({})", "{}::text", "{}::numeric(10,2)", "{}::numeric(3,-2)", "{}::numeric(4,6)",
         "{}::numeric(50,20)", "{}::int2", "{}::int4", "{}::int8"]
CURVES = ["exp({})", "ln({})", "log({})"]


def number(text):
    return f"'{text}'::numeric"


def random_number(draw):
    digits = draw.choice((1, 2, 4, 5, 9, 16, 19, 20, 28, 39, 60))
    text = "".join(draw.choice("0123456789") for _ in range(digits))
    at = draw.randrange(0, digits + 1)
    shown = f"{text[:at] or '0'}.{text[at:]}" if draw.random() < 0.7 else text
    if draw.random() < 0.3:
        shown = "0." + "0" * draw.randrange(0, 20) + text
    return ("-" if draw.random() < 0.3 else "") + shown


class Numeric(BesidePostgres):
    def setUp(self):
        print(f"SEED={SEED}", end=" ", flush=True)
        self.draw = random.Random(SEED)

    def pairs(self, count):
        drawn = [random_number(self.draw) for _ in range(40)]
        values = EDGES + drawn
        return [(self.draw.choice(values), self.draw.choice(values)) for _ in range(count)]

    def test_a_product_keeps_its_digits(self):
        self.assertEqual(answer(self.ours, "select 1e-20 * 1e-20"), [(b"0." + b"0" * 39 + b"1",)])

    def test_arithmetic(self):
        statements = [
            "select " + form.format(number(left), number(right))
            for left, right in self.pairs(150) for form in self.draw.sample(BINARY, 5) + self.draw.sample(ORDER, 1)
        ]
        statements += [
            "select " + form.format(number(left), number(right))
            for left in FAR for right in ("1e131071", "3", "7e-16383") for form in BINARY[:5]
        ]
        self.assert_same(statements)

    def test_one_argument(self):
        values = EDGES + [random_number(self.draw) for _ in range(20)]
        self.assert_same(["select " + form.format(number(value)) for value in values for form in self.draw.sample(UNARY, 10)])

    def test_rounding_to_places(self):
        self.assert_same([
            f"select {name}({number(value)}, {places})"
            for name in ("round", "trunc") for value, _ in self.pairs(30) for places in (-25, -4, -1, 0, 1, 3, 8, 17, 40)
        ])

    def test_curves(self):
        small = [v for v in EDGES if v not in ("1e1000", "1e-1000") and len(v) < 45]
        small += [f"{self.draw.uniform(-300, 300):.{self.draw.randrange(12)}f}" for _ in range(20)]
        statements = ["select " + form.format(number(value)) for value in small for form in CURVES]
        statements += [
            f"select log({number(base)}, {number(value)})" for base in ("2", "0.5", "1.0001", "1", "0") for value in small[::2]
        ]
        self.assert_same(statements)

    def test_powers(self):
        bases = ["0", "0.0", "1", "-1", "2", "-2", "10", "0.5", "1.0001", "-1.5", "3.789", "12345.6789", "NaN", "Infinity",
                 "-Infinity"]
        exponents = ["0", "1", "-1", "2", "3", "-3", "17", "64", "-64", "0.5", "-0.5", "2.5", "3.3", "1000", "-1000", "1e10",
                     "2147483648", "NaN", "Infinity", "-Infinity"]
        self.assert_same([
            f"select power({number(base)}, {number(exponent)})" for base in bases for exponent in exponents
        ] + ["select 2.0 ^ 3", "select 2 ^ 3", "select |/ 2.25", "select @ -3.5"])

    def test_casts_and_texts(self):
        texts = ["1e5", "1.5E-3", " 42 ", "+7", ".5", "5.", "1e", "1e+", "", " ", ".", "1..2", "1_000", "--1", "+ 1", "inf",
                 "-inf", "+infinity", "nan", "-nan", "0x1f", "1e131072", "1e-16384", "0e200000", "1e999999999999", "-0", "-0.00",
                 "1 2", "1e5.5"]
        statements = [f"select '{text}'::numeric" for text in texts]
        floats = ["1.5", "1e300", "-1e-300", "0.1", "123456789012345678", "1e15", "NaN", "Infinity", "-Infinity", "1e-7"]
        statements += [f"select '{value}'::float8::numeric" for value in floats]
        statements += [f"select {number(value)}::float8" for value in EDGES + ["1e308", "1e309", "1e-320", "1e-400"]]
        statements += [f"select {value}::{kind}::numeric" for kind in ("int2", "int4", "int8") for value in (-32768, 0, 32767)]
        statements += ["select 1e300::float8", "select cast(1e400 as float8)", "select 1::numeric(0)", "select 1::numeric(2000)",
                       "select 123456789012345678901234567890", "select -9223372036854775808", "select 1.e3"]
        self.assert_same(statements)

    def test_wider_functions(self):
        self.assert_same(
            [f"select factorial({n})" for n in (-1, 0, 1, 5, 20, 21, 100)]
            + [f"select width_bucket({number(x)}, {number(low)}, {number(high)}, {count})"
               for x in ("-5", "0", "3.7", "9.999", "10", "Infinity") for low, high in (("0", "10"), ("10", "0"), ("1", "1"))
               for count in (1, 3, 0)]
            + ["select gcd(12, 18)", "select lcm(12, 18)", "select lcm(2147483647, 2)", "select gcd(0, 0)"]
        )

    def test_series(self):
        bounds = ["1", "0.0", "-1.5", "4.25", "3::numeric", "'NaN'::numeric", "'inf'::numeric", "null::numeric", "9e131071", "7::int2"]
        steps = ["1", "-0.3", "0.0", "1.25", "'-inf'::numeric", "'nan'::numeric", "null::numeric", "1e131071", "-1e131071"]
        self.assert_same([f"select * from generate_series({start}, {stop})" for start in bounds[:-2] for stop in bounds[:-2]]
                         + [f"select i, i * 2 from generate_series({start}, {stop}, {step}) i where i <> 1"
                            for start in bounds[:5] + bounds[-1:] for stop in bounds[:5] for step in steps[:4]]
                         + [f"select * from generate_series(1.5, 3, {step})" for step in steps]
                         + ["select count(*), sum(i) from generate_series(1, 1000, 0.1) i",
                            "select (i / 1e131071)::int from generate_series(-9e131071, 9e131071, 1e131071) i"])

    def test_tables_indexes_and_aggregates(self):
        self.both("create table n (k int primary key, g int, v numeric, f numeric(12,3), i int4, l int8, s int2)")
        rows = []
        for k in range(300):
            value = self.draw.choice(EDGES + FAR[2:]) if k % 3 == 0 else random_number(self.draw)
            fixed = f"{self.draw.uniform(-1e6, 1e6):.5f}"
            rows.append(f"({k}, {k % 7}, {number(value)}, {fixed}, {k * 7919 % 1000}, {k * 10**15}, {k % 300 - 150})")
        self.both("insert into n values " + ", ".join(rows))
        self.both("create index n_v on n (v)")
        finite = "where v > '-Infinity' and v < 'Infinity'"
        self.assert_same(
            ["select k, v from n order by v, k", "select k, f from n order by f desc, k",
             "select v, count(*) from n group by v order by v", "select count(distinct v) from n",
             "select k from n where v between -1 and 1.5 order by k", "select k from n where v > 1e20 order by k",
             "select k from n where v = 1 order by k", "select k from n where v in (0, 1.50, 'NaN') order by k",
             "select k from n where v < i order by k", "select g, min(v), max(v) from n group by g order by g"]
            + [f"select g, sum({c}), avg({c}) from n group by g order by g" for c in ("f", "i", "l", "s")]
            + [f"select g, sum(v), avg(v) from n {finite} group by g order by g", "select sum(v) from n"]
            + [f"select {name}({c}) from n" for name in ("stddev", "stddev_pop", "variance", "var_pop") for c in ("f", "i", "l", "s")]
            + ["select stddev(f) from n where k = 0", "select var_pop(f) from n where k = 0", "select variance(v) from n"]
        )
        self.assert_same(["select v, f from n order by k"], binary=True)

    def test_copy(self):
        self.both("create table c (v numeric, w numeric(20,4))")
        lines = "".join(f"{value}\t{self.draw.randrange(10**12)}.5\n" for value in EDGES)
        shown = []
        for connection in (self.ours, self.theirs):
            with connection.cursor() as cursor:
                with cursor.copy("copy c from stdin") as copy:
                    copy.write(lines)
                with cursor.copy("copy c to stdout") as copy:
                    shown.append(b"".join(bytes(part) for part in copy))
        self.assertEqual(*shown)

    def test_a_field_that_overflows_says_so(self):
        self.both("create table o (v numeric(5,2))")
        self.assert_same(["insert into o values (1000)", "insert into o values ('Infinity')", "insert into o values ('NaN')",
                          "insert into o values (999.994)", "insert into o values (999.995)", "select v from o"])
