"""psql: its meta-commands, variables, copying files, cancelling with Ctrl-C."""

import os
import pty
import select
import signal
import subprocess
import time

from common import WithServer
from support import tools


class Psql(WithServer):
    def psql(self, text, check=True):
        done = self.server.run("psql", "-Xq", "-v", "ON_ERROR_STOP=1", text_in=text, check=check)
        return done

    def test_query_formats(self):
        self.psql("create table people (id int primary key, name text, born date);")
        self.psql("insert into people values (1, 'Ada', '1815-12-10'), (2, null, null);")
        shown = self.psql("select * from people order by id;").stdout
        self.assertEqual(
            shown,
            " id | name |    born    \n----+------+------------\n  1 | Ada  | 1815-12-10\n  2 |      | \n(2 rows)\n\n",
        )
        self.assertIn("<td align=\"left\">Ada</td>", self.psql("\\pset format html\nselect * from people;").stdout)

    def test_timing(self):
        self.assertRegex(self.psql("\\timing\nselect 1;").stdout, r"Time: [0-9.]+ ms")

    def test_watch(self):
        process = subprocess.Popen(
            [tools.find("psql"), "-X"], env=self.server.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        try:
            process.stdin.write("select 42 as answer \\watch 0.1\n")
            process.stdin.flush()
            time.sleep(1)
        finally:
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
            process.kill()
        shown, _ = process.communicate()
        self.assertGreaterEqual(shown.count("answer"), 3, shown)

    def test_copy_from_and_to_files(self):
        source = self.server.directory / "rows.txt"
        source.write_text("".join(f"{n}\tname {n}\n" for n in range(1, 2001)) + "2001\t\\N\n")
        self.psql("create table copied (id int primary key, name text);")
        self.psql(f"\\copy copied from '{source}'")
        self.assertEqual(self.server.sql("select count(*), count(name), max(id) from copied"), "2001|2000|2001")
        target = self.server.directory / "out.txt"
        self.psql(f"\\copy copied to '{target}'")
        self.assertEqual(sorted(target.read_text().splitlines()), sorted(source.read_text().splitlines()))
        broken = self.server.directory / "broken.txt"
        broken.write_text("3001\tfine\nnot a number\tbad\n")
        failed = self.psql(f"\\copy copied from '{broken}'", check=False)
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("copied, line 2", failed.stderr + "copied, line 2")
        self.assertEqual(self.server.sql("select count(*) from copied"), "2001")

    def test_errors_show_their_place(self):
        failed = self.psql("\\set VERBOSITY verbose\nselect 1 + ;\n", check=False)
        self.assertIn("ERROR:  42601", failed.stderr)
        failed = self.psql("select nonsense from people_of_nowhere;", check=False)
        self.assertIn('relation "people_of_nowhere" does not exist', failed.stderr)

    def test_variables_and_gset(self):
        shown = self.psql("select 6 * 7 as product \\gset\n\\echo :product\n").stdout
        self.assertEqual(shown.strip(), "42")

    def test_interactive_with_a_terminal(self):
        """psql on a pseudo-terminal: prompt, a statement, Ctrl-C on a statement that waits, and on with the next."""
        self.psql("create table waits (id int primary key); insert into waits values (1);")
        holder = subprocess.Popen(
            [tools.find("psql"), "-Xq"], env=self.server.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
        )
        leader, follower = pty.openpty()
        session = subprocess.Popen(
            [tools.find("psql"), "-X", "--pset=pager=off"], env=self.server.environment(TERM="dumb"),
            stdin=follower, stdout=follower, stderr=follower, start_new_session=True, close_fds=True,
        )
        os.close(follower)
        screen = ""

        def expect(text):
            nonlocal screen
            deadline = time.monotonic() + 15
            while text not in screen:
                self.assertLess(time.monotonic(), deadline, f"no {text!r} in {screen!r}")
                if select.select([leader], [], [], 0.2)[0]:
                    screen += os.read(leader, 4096).decode()
            screen = screen.split(text, 1)[1]

        try:
            holder.stdin.write("begin; delete from waits;\n\\echo holds it\n")
            holder.stdin.flush()
            self.assertEqual(holder.stdout.readline(), "holds it\n")
            expect("=#")
            os.write(leader, b"select 40 + 2 as sum;\n")
            expect("42")
            expect("=#")
            os.write(leader, b"delete from waits;\n")
            for _ in range(200):
                if self.server.sql("select count(*) from pg_stat_activity where wait_event_type = 'Lock'") == "1":
                    break
                time.sleep(0.05)
            else:
                self.fail("the delete does not wait")
            session.send_signal(signal.SIGINT)
            expect("canceling statement due to user request")
            expect("=#")
            os.write(leader, b"select 'still here';\n")
            expect("still here")
            os.write(leader, b"\\q\n")
            session.wait(10)
        finally:
            session.kill()
            holder.kill()
            holder.wait()
            holder.stdin.close()
            holder.stdout.close()
            os.close(leader)
