"""Measurements of several servers in turns: options, order, and what the results are shown and saved with.

Within a round each point is measured on all servers one after the other, in an order that turns from round to round, so
that whatever the machine does meanwhile hits all alike.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

from . import other_programs, servers, tools


class Measured(NamedTuple):
    """One run of one server."""

    tps: float
    p99_ms: float | None = None

    def __str__(self):
        return f"{self.tps:,.0f} tps" + ("" if self.p99_ms is None else f", p99 {self.p99_ms:,.2f} ms")


def at_least_one(text):
    """The type of an option that is a number of 1 or more."""
    if not re.fullmatch("[1-9][0-9]{0,5}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 999999")
    return int(text)


def numbers(text):
    """The type of an option that is a list of such numbers."""
    return [at_least_one(part) for part in text.split(",")]


def names_of(known):
    """The type of an option that is a list of some of these names."""
    def parse(text):
        for name in text.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no {name!r}; there are {', '.join(known)}")
        return text.split(",")
    return parse


def megabytes(text):
    """The type of an option that is an amount of memory."""
    if not re.fullmatch("[1-9][0-9]{0,5}MB", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount such as 256MB")
    return int(text.removesuffix("MB"))


def assignment(text):
    """The type of an option NAME=VALUE."""
    if not re.fullmatch("[a-z_]+=[^=]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return text


def assignments(text):
    """The type of an option that is a list of those."""
    return [assignment(part) for part in text.split(",")]


def parser(about, scripts, rounds):
    """A parser of the options that comparisons of transactions have. `scripts`: all there are, and those that run by
    default."""
    known, usual = scripts
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--scripts", type=names_of(known), default=usual, metavar="NAME,…",
                      help=f"of {', '.join(known)}; without it {', '.join(usual)}")
    made.add_argument("--clients", type=numbers, default=[1, 4, 16, 64], metavar="N,…",
                      help="numbers of clients; without it 1,4,16,64")
    made.add_argument("--duration", type=at_least_one, default=5, help="seconds of each measurement; without it 5")
    server_options(made, rounds)
    made.add_argument("--smoke", action="store_true",
                      help="only see whether everything runs: one round of one second with two clients and little data")
    return made


def server_options(made, rounds):
    """Adds the options of every comparison: the servers, the rounds, what runs beside, and the file of results."""
    made.add_argument("--rounds", type=at_least_one, default=rounds, help=f"without it {rounds}")
    made.add_argument("--buffers", type=megabytes, default=256, metavar="256MB", help="buffers of each server")
    made.add_argument("--preset", choices=["classic", "clearway"], help="Clearway's preset of mechanisms")
    made.add_argument("--set", type=assignment, action="append", default=[], metavar="NAME=VARIANT",
                      help="choose the variant of one of Clearway's mechanisms, as with `clearway serve`")
    made.add_argument("--setting", type=assignment, action="append", default=[], metavar="NAME=VALUE",
                      help="a line for Clearway's configuration, such as session_scheduling=normal")
    made.add_argument("--also", type=assignments, action="append", default=[], metavar="NAME=VALUE,…",
                      help="another Clearway server in the same rounds, with these mechanisms or settings changed")
    other_programs.options(made)
    made.add_argument("--out", type=pathlib.Path, help="write all measurements to this file, as JSON")


def parsed(made):
    """The options given, which `--smoke` makes small."""
    options = made.parse_args()
    if options.smoke:
        options.duration, options.rounds, options.clients = 1, 1, [2]
    return options


def clearway(binary, directory, options, also=()):
    """Clearway's server under these options, with the mechanisms and settings of `also` changed."""
    listed = subprocess.run([binary, "mechanisms"], capture_output=True, text=True, check=True).stdout
    switches = set(re.findall("^([a-z_]+):", listed, re.MULTILINE))
    changed = {line.split("=")[0]: line for line in also}
    choices = {line.split("=")[0]: line for line in options.set}
    choices.update({name: line for name, line in changed.items() if name in switches})
    settings = {line.split("=")[0]: line for line in options.setting}
    settings.update({name: line for name, line in changed.items() if name not in switches})
    lines = [f'shared_buffers = "{options.buffers}MB"']
    for name, value in (line.split("=") for line in settings.values()):
        lines.append(f"{name} = {value if re.fullmatch('[0-9.]+|true|false', value) else json.dumps(value)}")
    arguments = [] if options.preset is None else ["--preset", options.preset]
    for choice in choices.values():
        arguments += ["--set", choice]
    return servers.Clearway(binary, directory, "\n".join([*lines, ""]), arguments)


def clearways(binary, directory, options):
    """Clearway's servers: the first under the options alone, then one for each `--also`."""
    made = []
    for number, also in enumerate([[], *options.also]):
        home = directory / f"clearway-{number}"
        home.mkdir()
        server = clearway(binary, home, options, also)
        if also:
            server.name = f"clearway {','.join(also)}"
        made.append(server)
    return made


def start(server):
    """Starts a server; one that does not start ends the script with its own words."""
    try:
        server.start()
    except RuntimeError as error:
        sys.exit(f"{server.name}: {error}")


def in_turns(everyone, points, rounds, measure, unit="clients"):
    """What `measure(server, script, clients)` returned, in the order of the rounds, by script, clients and name."""
    results = {(*point, server.name): [] for point in points for server in everyone}
    count = len(points) * rounds * len(everyone)
    began = time.monotonic()
    done = 0
    for number in range(rounds):
        first = number % len(everyone)
        for script, clients in points:
            for server in everyone[first:] + everyone[:first]:
                measured = measure(server, script, clients)
                results[script, clients, server.name].append(measured)
                done += 1
                print(
                    f"[{done:3}/{count}, {time.monotonic() - began:4.0f} s] round {number + 1}: "
                    f"{script}, {clients} {unit}, {server.name}: {measured}",
                    flush=True,
                )
    return results


def tps(results):
    """The transactions a second alone."""
    return [measured.tps for measured in results]


def median_p99(results):
    """The median of the 99th percentiles, in milliseconds."""
    return statistics.median(measured.p99_ms for measured in results)


def ratios(ours, theirs):
    """Transactions a second of ours to theirs, round by round."""
    return [ours.tps / theirs.tps for ours, theirs in zip(ours, theirs, strict=True)]


def quartiles(values):
    """The three values that cut the sorted ones into four parts."""
    return statistics.quantiles(values, method="inclusive") if len(values) > 1 else values * 3


def aligned(rows):
    """Rows of texts as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *others = (
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join([first, *others]).rstrip()


class Circumstances:
    """Under which the measurements are made; to be created before the first."""

    def __init__(self):
        self.machine = machine()
        self.commit = commit()
        self.cpus_by = cpus_by()
        self.load_before = os.getloadavg()[0]

    def __str__(self):
        return (
            f"{self.machine}; commit {self.commit}; CPUs shared out by {self.cpus_by}; "
            f"load {self.load_before:.1f} before the first run, {os.getloadavg()[0]:.1f} after the last"
        )

    def save(self, path, results):
        """Writes all measurements, if there is a path."""
        if path is None:
            return
        points = [
            {
                "script": script, "clients": clients, "server": name, "tps": tps(measured),
                "p99_ms": [one.p99_ms for one in measured],
            }
            for (script, clients, name), measured in results.items()
        ]
        path.write_text(json.dumps({
            "command": sys.argv, "machine": self.machine, "commit": self.commit,
            "cpus_by": self.cpus_by, "load": [self.load_before, os.getloadavg()[0]], "points": points,
        }, indent=1) + "\n")


def cpus_by():
    """To what Linux gives equal shares of the CPUs: to each login session, of which a server of processes may be many and
    one of threads is one, or to each thread."""
    try:
        on = pathlib.Path("/proc/sys/kernel/sched_autogroup_enabled").read_text().strip() == "1"
    except OSError:
        # A kernel without autogroup.
        on = False
    return "session (autogroup)" if on else "thread"


def machine():
    """CPUs and kernel."""
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{len(os.sched_getaffinity(0))} × {model}, Linux {platform.release()}"


def commit():
    """The commit of this checkout."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=tools.ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
