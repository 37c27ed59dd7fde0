"""to_char of numbers and to_number against PostgreSQL: random templates over edge values and random numbers."""

import os
import random

from peer import BesidePostgres

SEED = int(os.environ.get("SEED", "15"))

NUMBERS = ["0", "0.1", "-0.1", "1", "-1", "2", "3", "11", "12", "13", "21", "-12", "0.99", "0.995", "9.5", "99.5", "1234.567",
           "-1234.567", "1e-7", "123456", "0.05", "-0.004", "1000", "1999", "3999", "4000", "1234567.891", "100", "101.5"]
KINDS = {"numeric": ["NaN", "Infinity", "-Infinity", "1e20", "-1.5e-20", "12345678901234567890.5", "2147483648"],
         "float8": ["NaN", "Infinity", "-Infinity", "1e20", "1e-300", "-0", "123456789012345678"],
         "float4": ["NaN", "Infinity", "-Infinity", "1e20", "1e-30", "-0", "1234567"],
         "int8": ["9223372036854775807", "-9223372036854775808"], "int4": ["2147483647", "-2147483648"], "int2": ["-32768"]}
PLACES = ["9", "9", "9", "0", "99", ",", "G", ".", "D", "9.9", "99.99", "0.0", "9,999"]
SIGNS = ["S", "MI", "PL", "SG", "PR"]
OTHERS = ["FM", "FM", "L", "TH", "th", "V", "V9", "RN", "rn", "EEEE", "B", "C", "SP", " ", "x", '"a b"', '\\"', "\\", '"q\\"', "ä", "E"]
INPUTS = ["12", "-12", "12-", " 12", "1 2", "+12", "1,234.5", "$1,2", "<12>", "1.5", "-1.5", ".5", "", "  ", "abc", "1a2", "12.3.4",
          "- 1", "1-2", "12th", "x12", "--12", "+-12", "12+", "> 12", "1e5", "1.", "5 -", "ä1ö2", "1.-", "- .5", "9,9", "+", "-", ".", "<"]


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class NumberFormat(BesidePostgres):
    def setUp(self):
        print(f"SEED={SEED}", end=" ", flush=True)
        self.draw = random.Random(SEED)

    def template(self):
        draw = self.draw
        parts = [draw.choice(PLACES) for _ in range(draw.randrange(1, 6))]
        for pool, often in ((SIGNS, 0.5), (SIGNS, 0.05), (OTHERS, 0.5), (OTHERS, 0.3), (OTHERS, 0.1)):
            if draw.random() < often:
                parts.insert(draw.randrange(len(parts) + 1), draw.choice(pool))
        text = "".join(parts)
        return text.lower() if draw.random() < 0.05 else text

    def value(self, kind):
        draw = self.draw
        if kind.startswith("int"):
            whole = [number for number in NUMBERS if number.lstrip("-").isdigit() and int(number) < 32768]
            return draw.choice(whole + KINDS[kind] + [str(draw.randrange(-9999, 9999))])
        return draw.choice(NUMBERS + KINDS[kind] + [f"{draw.uniform(-2000, 2000):.{draw.randrange(6)}f}"])

    def test_one_pattern_at_each_place(self):
        templates = [f"{before}{pattern}{after}" for pattern in SIGNS + OTHERS + ["0"]
                     for before in ("", "9", "99", "9.9") for after in ("", "9", "9.9", "0.0")]
        self.assert_same([f"select to_char({number}, {quoted(template)})" for template in templates
                          for number in ("1.5", "-12.34", "0", "-0.04::float8", "7")])

    def test_random_templates(self):
        statements = []
        for _ in range(2_500):
            template, kind = self.template(), self.draw.choice(list(KINDS))
            if kind == "int4" and "v" in template.lower():
                # Beyond its range: here an error, in PostgreSQL what is left after an overflow.
                kind = "int8"
            value = self.value(kind)
            statements.append(f"select to_char({quoted(value)}::{kind}, {quoted(template)})")
        self.assert_same(statements)

    def test_wide_templates(self):
        wide = ["9" * 30 + "." + "9" * 30, "0" * 40, "FM" + "9" * 50 + "." + "9" * 50, "9" * 10 + "V" + "9" * 12, "9." + "9" * 40 + "EEEE",
                "9G999G999G999G999G999D999G999", "9,9" * 50, "99.99" + "EEEE", "FM9990999.99900999"]
        values = [(value, kind) for kind in ("numeric", "float8", "float4", "int8") for value in
                  ("0", "1", "-7", *(() if kind == "int8" else ("0.5", "1e-9", "1234567.8901234", "9.9999999e9", "1e300" if kind[-1] != "4" else "1e30")))]
        self.assert_same([f"select to_char('{value}'::{kind}, {quoted(template)})" for template in wide for value, kind in values])

    def test_errors_and_nulls(self):
        self.assert_same([
            "select to_char(null::numeric, '9')", "select to_char(1, null)", "select to_char(1, '')", "select to_number('1', '')",
            "select to_number(null, '9')", "select to_number('', '')", "select to_number('1', 'RN')", "select to_number('1', 'EEEE')",
            "select to_char(9223372036854775807, 'RN')", "select to_char(1e10, 'RN')", "select to_char('NaN'::numeric, 'RN')",
            "select to_char(9223372036854775807, '9V9')", "select to_char('NaN'::numeric, '999th')",
        ])

    def test_to_number(self):
        statements = [f"select to_number({quoted(text)}, {quoted(template)})" for text in INPUTS for template in
                      ("99", "9999", "99.9", "S99", "99S", "99MI", "MI99", "99PR", "SG99", "99SG", "PL99", "9,999.9", "9G999D9", "L99", "99th",
                       '"x"99', "x99", "99V9", "FM99", "0", "B9", "99.9S", "9 9", "FM9,999", ".99", "S.99", "99PL", "9MI9")]
        for _ in range(1_500):
            text = self.draw.choice(INPUTS + NUMBERS)
            if self.draw.random() < 0.4:
                text = "".join(self.draw.choice("0123456789.,+- <>$x") for _ in range(self.draw.randrange(1, 9)))
            statements.append(f"select to_number({quoted(text)}, {quoted(self.template())})")
        self.assert_same(statements)

    def test_there_and_back(self):
        self.both("create table b (k int primary key, v numeric(12,3), f float8)")
        self.both("insert into b values " + ", ".join(
            f"({k}, {self.draw.uniform(-99999, 99999):.3f}, {self.draw.uniform(-99999, 99999)})" for k in range(200)))
        self.assert_same([
            f"select k, to_char(v, '{t}'), to_char(f, '{t}'), to_number(to_char(v, '{t}'), '{t}') = v from b order by k"
            for t in ("99G999D999S", "S99999.999", "99999.999MI", "99,999.999PR", "SG99999D999", "FM99999.000")
        ])
