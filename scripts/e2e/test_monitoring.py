"""A Prometheus reads a primary with a standby: every metric arrives, the alerts and the dashboard ask for what there is, and
an alert fires."""

import json
import re
import subprocess
import time
import unittest
import urllib.parse
import urllib.request

from support import servers, tools

MONITORING = tools.ROOT / "contrib" / "monitoring"
PATIENCE = 120


def configuration(port):
    return f'shared_buffers = "16MB"\nmetrics_listen = "127.0.0.1:{port}"\n'


class Prometheus:
    """Debian's, on a directory of its own, with the alerts of contrib/monitoring."""

    def __init__(self, directory, targets):
        self.port = servers.free_port()
        rules = (MONITORING / "clearway.rules.yml").read_text()
        # A test cannot wait for minutes; the expressions stay as they are, but for one threshold.
        rules = re.sub(r"for: \d+m", "for: 0s", rules).replace("clearway_oldest_transaction_seconds > 3600",
                                                               "clearway_oldest_transaction_seconds > 0.5")
        (directory / "clearway.rules.yml").write_text(rules)
        written = (MONITORING / "prometheus.yml").read_text()
        written = written.replace("scrape_interval: 5s", "scrape_interval: 250ms\n  evaluation_interval: 250ms")
        written = written.replace("'127.0.0.1:9187'", ", ".join(f"'{target}'" for target in targets))
        (directory / "prometheus.yml").write_text(written)
        self.log = (directory / "prometheus.log").open("wb")
        self.process = subprocess.Popen(
            [tools.find("prometheus"), f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/tsdb",
             f"--web.listen-address=127.0.0.1:{self.port}", "--web.console.templates=/nowhere",
             "--web.console.libraries=/nowhere"],
            stdout=self.log, stderr=self.log,
        )

    def get(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]

    def values(self, expression):
        return self.get("query", query=expression)["result"]

    def until(self, what, look):
        """What `look` gives, once it gives something."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                found = look()
            except OSError as error:
                found = None
                what = f"{what} ({error})"
            if found:
                return found
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise AssertionError(f"{what}: {found}\n{open(self.log.name).read()[-3000:]}")
            time.sleep(0.1)

    def end(self):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


class Monitoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tools.need("prometheus", "promtool", "psql")
        cls.directory = servers.scratch("monitoring")
        cls.ports = [servers.free_port(), servers.free_port()]
        binary = tools.build()
        cls.primary = servers.Clearway(binary, cls.directory / "primary", configuration(cls.ports[0])).start()
        cls.addClassCleanup(cls.primary.kill)
        cls.standby = servers.Standby(
            binary, cls.directory / "standby", cls.primary, configuration(cls.ports[1]),
            ["--slot", "berlin", "--create-slot"], application="berlin",
        ).start()
        cls.addClassCleanup(cls.standby.kill)
        cls.prometheus = Prometheus(cls.directory, [f"127.0.0.1:{port}" for port in cls.ports])
        cls.addClassCleanup(cls.prometheus.end)
        cls.prometheus.until("both are read", lambda: len(cls.prometheus.values("up == 1")) == 2)

    def text(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[0]}/metrics", timeout=10) as answer:
            self.assertIn("application/openmetrics-text", answer.headers["Content-Type"])
            return answer.read().decode()

    def test_prometheus_tools_find_nothing_wrong(self):
        for check in (["check", "rules", "clearway.rules.yml"], ["check", "config", "prometheus.yml"]):
            done = subprocess.run([tools.find("promtool"), *check], cwd=MONITORING, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_is_counted_arrives(self):
        commits = 'clearway_transactions_total{outcome="commit"}'
        of_primary = f'instance="127.0.0.1:{self.ports[0]}"'

        def counted():
            found = self.prometheus.values(commits.replace("}", f",{of_primary}}}"))
            return float(found[0]["value"][1]) if found else None

        before = self.prometheus.until("commits", counted)
        self.primary.sql("create table counted (n int)")
        for number in range(20):
            self.primary.sql(f"insert into counted values ({number})")
        self.prometheus.until("twenty commits more", lambda: counted() >= before + 21)
        # A standby and its slot are labelled by their names; the standby knows what it is.
        for expression in (
            'clearway_standby_lag_bytes{application_name="berlin"}',
            'clearway_standby_lag_seconds{application_name="berlin"}',
            'clearway_slot_active{slot="berlin"} == 1',
            f'clearway_is_standby{{instance="127.0.0.1:{self.ports[1]}"}} == 1',
            "clearway_wal_flushed_bytes > 0",
        ):
            self.prometheus.until(expression, lambda: self.prometheus.values(expression))

    def test_alerts_and_dashboard_ask_for_what_there_is(self):
        # The samples of a counter have another name than the metric; the metric's own finds none.
        suffixes = {"gauge": "", "counter": "_total"}
        told = {name + suffixes[kind] for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", self.text(), re.MULTILINE)}
        rules = (MONITORING / "clearway.rules.yml").read_text()
        dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text())
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        self.assertGreater(len(expressions), 20)
        for text in [rules, *expressions]:
            for name in re.findall(r"\bclearway_\w+", text):
                self.assertIn(name, told)
        for expression in expressions:
            asked = expression.replace("$__rate_interval", "1m").replace("$instance", ".*")
            self.prometheus.values(asked)

    def test_an_alert_fires_for_a_transaction_that_stays_open(self):
        def firing():
            alerts = self.prometheus.get("alerts")["alerts"]
            return [alert for alert in alerts if alert["labels"]["alertname"] == "ClearwayOldTransaction"
                    and alert["state"] == "firing"]

        session = servers.Prompt(self.primary)
        session.ask("begin; select 1")
        fired = self.prometheus.until("the alert", firing)
        self.assertIn("a transaction is open for", fired[0]["annotations"]["summary"])
        session.ask("commit")
        session.close()
        self.prometheus.until("the end of the alert", lambda: not firing())
