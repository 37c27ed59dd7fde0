"""The unit of systemd is one that systemd takes without a warning."""

import subprocess
import unittest

from support import servers, tools

UNIT = tools.ROOT / "contrib/systemd/clearway.service"


class Service(unittest.TestCase):
    def test_the_unit_is_sound(self):
        tools.need("systemd-analyze")
        text = UNIT.read_text()
        self.assertIn("/usr/local/bin/clearway", text)
        # systemd-analyze looks for the program and the user as well.
        text = text.replace("/usr/local/bin/clearway", str(tools.build())).replace("=clearway\n", "=root\n", 2)
        unit = servers.scratch("service") / "clearway.service"
        unit.write_text(text)
        done = subprocess.run(
            [tools.find("systemd-analyze"), "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
