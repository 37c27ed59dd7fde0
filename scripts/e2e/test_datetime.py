"""Dates and timestamps against PostgreSQL: every form of input, read by both, and what is refused."""

import time

from common import WithServer
from peer import BesidePostgres, connect

DATES = [
    "January 8, 1999", "1999-01-08", "1/8/1999", "1/18/1999", "01/02/03", "1999-Jan-08", "Jan-08-1999", "08-Jan-1999",
    "99-Jan-08", "08-Jan-99", "Jan-08-99", "19990108", "990108", "1999.008", "1999 008", "J2451187", "j2451187", "Julian 2451187",
    "January 8, 99 BC", "8 Jan 1999", "8 January 1999", "1999 Jan 8", "1999 8 Jan", "Jan 8 1999", "jan 8 99", "8 jan 69",
    "8 jan 70", "8/1/1999", "18/1/1999", "99-01-08", "1999-18-01", "1999/1/8", "1.8.1999", "1-8-1999", "99 Jan 08", "08 Jan 99",
    "08 Jan 1999", "Jan 08 99", "Friday, January 8, 1999", "Fri Jan 8 1999", "sunday 8 jan 1999", "0044-03-15 BC", "1999-01-08 AD",
    "0099-01-08", "99999-01-08", "5874897-12-31", "5874898-01-01", "4714-11-24 BC", "4714-11-23 BC", "4713-01-01 BC",
    "0000-01-01", "0001-01-01", "1 BC", "2000-02-29", "1900-02-29", "2023-02-29", "2023-02-30", "1999-13-08", "1999-01-32",
    "1999-00-08", "", " ", "today is", "January", "8", "1999", "1999-01", "99", "19990108 04:05", "1999-01-08 04:05:06+02",
    "Sept 8 1999", "8-sep-1999", "1999-01-08T04:05:06Z", "infinity", "-infinity", "epoch", "Infinity", "on 8 Jan 1999",
    "20011225", "20011232", "2001-12-25 BC", "12/25/2001", "25.12.2001", "12.25.2001", "2001.12.25", "08Jan1999", "1999Jan08",
    "1999-01-08x", "1999-01-08-", "1999--01-08", "jan/8/1999", "8 foo 1999", "1999-foo-08", "1 2 3 4", "Jan Feb 8 1999",
]
TIMESTAMPS = [
    "1999-01-08 04:05:06", "1999-01-08 04:05:06.789", "1999-01-08 04:05", "1999-01-08 040506", "1999-01-08 0405", "19990108 040506",
    "19990108T040506", "19990108T040506.789", "1999-01-08T04:05:06", "1999-01-08 04:05 AM", "1999-01-08 04:05 PM",
    "1999-01-08 4:05 pm", "1999-01-08 12:05 AM", "1999-01-08 12:05 PM", "1999-01-08 13:05 PM", "1999-01-08 04:05PM",
    "1999-01-08 04:05:06.789-8", "1999-01-08 04:05:06-08:00", "1999-01-08 04:05-08:00", "1999-01-08 040506-08",
    "1999-01-08 040506+0730", "1999-01-08 040506+07:30:00", "1999-01-08 04:05:06 PST", "1999-01-08 04:05:06 -8",
    "1999-01-08 04:05:06 -08", "1999-01-08 04:05:06z", "1999-01-08 04:05:06 Z", "1999-01-08 04:05:06 zulu",
    "1999-01-08 04:05:06 UTC", "1999-01-08 04:05:06 utc", "1999-01-08 04:05:06 GMT", "1999-01-08 04:05:06 EST",
    "1999-01-08 04:05:06 EDT", "1999-01-08 04:05:06 CET", "1999-01-08 04:05:06 CEST", "1999-01-08 04:05:06 JST",
    "1999-01-08 04:05:06+15:59", "1999-01-08 04:05:06+16", "1999-01-08 04:05:06+05:75", "1999-01-08 04:05:06 XYZ",
    "1999-01-08 04:05:06 Nowhere/Land", "Wed Dec 17 07:37:16 1997", "Wed Dec 17 07:37:16 1997 PST", "17 Dec 1997 07:37:16 -08",
    "Dec 17 07:37:16.5 1997", "12/17/1997 07:37:16.00 PST", "07:37:16 Dec 17 1997", "January 8 04:05:06 1999 PST",
    "04:05:06 January 8, 1999", "Feb 10 17:32:01 1997 -0800", "Feb 10 5:32PM 1997", "1997/02/10 17:32:01-0800",
    "1997-02-10 17:32:01 -08:00", "19970210 173201 -0800", "97FEB10 5:32:01PM UTC", "97/02/10 17:32:01 UTC", "1997.041 17:32:01 UTC",
    "Feb 16 17:32:01 0097 BC", "Feb 16 17:32:01 5097 BC", "1999-01-08 24:00:00", "1999-01-08 24:00:01", "1999-01-08 23:59:60",
    "1999-01-08 23:59:61", "1999-01-08 25:00", "1999-01-08 04:60", "1999-01-08 04:05:06.7891234", "1999-01-08 04:05:06.9999999",
    "1999-01-08 23:59:59.9999999", "1999-01-08", "04:05:06", "now now", "294276-12-31 23:59:59.999999", "294277-01-01",
    "4714-11-24 00:00 BC", "4714-11-23 23:59 BC", "infinity", "-infinity", "epoch", "J2451187 04:05:06", "J2451187T04:05",
    "2001-09-22T18:19:20", "1999-01-08 allballs", "1999-01-08 04:05:06 BC", "1999-01-08 04:05:06 BC PST", "1999-01-08T",
    "1999-01-08T04", "T04:05", "1999-01-08 04:05:06.789 pm pst", "1999-01-08 4", "1999-01-08 04:05:06:07", "1999-01-08 :05",
    "1999-01-08 04:05 at", "1999-01-08\t04:05", "1999-01-08,04:05", "Friday 1999-01-08 04:05", "Fri Fri 8 Jan 1999",
    "04:05 1999-01-08", "AD 1999-01-08", "PST 1999-01-08 04:05", "04:05 PM January 8 1999", "Fri Jan 8 04:05 1999",
    "1999-01-08 04:05:06 UTC-3", "1999-01-08 04:05:06 +02 +03", "1999-01-08 04:05:06 UTC+3", "2000-01-01 00:00:00 msk", "2000-07-01 00:00:00 bst",
]


# What a clock showed: offsets that have changed, hours that were left out or came twice, years that no table reaches.
SHOWN = [
    "2010-12-31 12:00:00", "2011-03-27 01:59:59", "2011-03-27 02:00:00", "2011-03-27 02:59:59", "2011-03-27 03:00:00",
    "2014-10-26 00:59:59", "2014-10-26 01:00:00", "2014-10-26 01:30:00", "2014-10-26 02:00:00", "2014-10-26 02:00:01",
    "2016-03-13 02:30:00", "2016-11-06 01:30:00", "2023-03-26 02:30:00", "2023-10-29 02:30:00", "1991-01-20 12:00:00",
    "1985-07-01 12:00:00", "2020-01-15 12:00:00", "2020-07-15 12:00:00", "9999-07-15 12:00:00", "20023-07-15 12:00:00",
]
PLACES = [
    "Europe/Moscow", "europe/berlin", "America/New_York", "America/Caracas", "Asia/Kolkata", "Australia/Lord_Howe", "Etc/GMT+3",
    "PST8PDT", "EST5EDT", "Cuba", "Nowhere/Land", "Europe/Moscow DST",
]


class Datetime(BesidePostgres):
    def test_every_form_is_read_as_postgresql_reads_it(self):
        self.assert_same(
            [f"select '{text}'::{kind}" for kind in ("date", "timestamp", "timestamptz") for text in DATES + TIMESTAMPS]
        )

    def test_places_and_abbreviations_have_the_offsets_of_their_time(self):
        names = [name for name, in self.theirs.execute("select abbrev from pg_timezone_abbrevs order by abbrev")]
        self.assertGreater(len(names), 180)
        self.assert_same([f"select '{shown} {zone}'::timestamptz" for zone in PLACES + names for shown in SHOWN])

    def test_days_that_move(self):
        self.assert_same([
            f"select '{text}'::date - current_date, '{text}'::timestamp::date - current_date"
            for text in ("today", "tomorrow", "yesterday", "now", "tomorrow 04:05", "today allballs", "Yesterday 23:59:59")
        ] + ["select 'now'::timestamptz = now()", "select 'now'::timestamp = localtimestamp", "select 'today 04:05'::timestamp > 'today'"])


class Now(WithServer):
    def test_now_is_when_the_transaction_began(self):
        with connect(self.server) as connection:
            connection.execute("create table moments (how text, seen timestamptz)")
            connection.execute("begin")
            began = connection.execute("select now()").fetchone()[0]
            time.sleep(0.05)
            self.assertEqual(connection.execute("select 'now'::timestamptz").fetchone()[0], began)
            connection.execute("insert into moments values ('literal', 'now')")
            # Not known to psycopg as a time: the server reads the text.
            connection.execute("insert into moments values ('parameter', %s)", ("now",))
            with connection.cursor() as cursor, cursor.copy("copy moments from stdin") as copy:
                copy.write("copied\tnow\n")
            connection.execute("prepare p as insert into moments values ('prepared', 'now')")
            time.sleep(0.05)
            connection.execute("execute p")
            connection.execute("commit")
            moments = dict(connection.execute("select how, seen from moments").fetchall())
            self.assertEqual(moments, dict.fromkeys(("literal", "parameter", "copied", "prepared"), began))
            # Another transaction has another "now", also for a statement that was prepared before.
            time.sleep(0.01)
            connection.execute("execute p")
            latest = connection.execute("select max(seen) from moments").fetchone()[0]
            self.assertGreater(latest, began)
