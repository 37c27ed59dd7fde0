"""Runs a crate's tests over all its mutants, which one build holds at once (mutant_sources.py).

Invariant: a mutant that is called missed was run with every test in which its value was ever another than the unchanged
code's, and each passed. It is called unviable only if the compiler refuses the text that this mutant alone has.

1. The tree is copied to target/mutants/together-CRATE, with the switch as one more crate. What does not compile is
   taken out, by the places of the compiler's errors, until the rest does.
2. Each test is run alone, a short one twice, and writes down which mutants it reaches. A test that depends on time may
   reach another mutant on another day; this is what the second run is for, and all that is done about it.
3. Each mutant is run with the tests that reach it, one process a test: first those that caught another mutant of the
   same function, then those that are short and reach few mutants, since such a test is about what it reaches. The
   first that fails, or has no end, catches it.

A test has no end after 3 s and five times what it took before, by its own clock (own_clock.py). With a limit, tests
that take more by that clock are left out: what is missed then is missed by the others, and run again without the limit.
"""
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

from . import mutant_sources, own_clock

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SWITCH = ROOT / "scripts/support/mutation_switch"
# What a test may allocate: some mutants do so without end.
BYTES_MAX = 4 << 30
# A test that takes less is recorded twice.
SHORT_SECONDS = 0.1
# What the crate's own code is compiled with: each test is run often, and the build is one.
OPTIMISATION = "1"


class Tree:
    """The copy of the sources, with the mutants in it."""

    def __init__(self, crate, mutants):
        """`mutants`: what cargo-mutants lists with --json."""
        self.crate = crate
        self.path = ROOT / f"target/mutants/together-{crate}"
        by_file = {}
        for mutant in mutants:
            by_file.setdefault(mutant["file"], []).append(mutant)
        self.files = {name: mutant_sources.File((ROOT / name).read_bytes(), of_file)
                      for name, of_file in by_file.items()}
        self.names = []
        for file in self.files.values():
            self.names += file.number(len(self.names))
        # Why each mutant that was taken out was: "unviable", or "alone" if only this form of it does not compile.
        self.dropped = {name: "alone" for file in self.files.values() for name in file.missed}
        self.stretches, self.texts = {}, {}
        # What was taken out before is, if nothing has changed.
        sources = "".join(f"{name}\n" for name in self.names).encode() + b"".join(it.text for it in self.files.values())
        self.taken_out = self.path / f"target/taken-out-{hashlib.sha256(sources).hexdigest()}.json"
        if self.taken_out.exists():
            self.dropped = json.loads(self.taken_out.read_text())

    def environment(self):
        return {**os.environ, "CARGO_PROFILE_DEV_OPT_LEVEL": OPTIMISATION, "CARGO_PROFILE_DEV_DEBUG": "false",
                "CARGO_PROFILE_TEST_DEBUG": "false", "CARGO_TARGET_DIR": str(TARGET),
                "CARGO_MANIFEST_DIR": str(self.path / "crates" / self.crate)}

    def write(self):
        """Brings the copy up to date. A file that stays as it is keeps its time: cargo builds no more than it must."""
        listed = ["git", "ls-files", "-co", "--exclude-standard"]
        names = set(subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines())
        for name in names:
            if (ROOT / name).is_file():
                replace(self.path / name, self.changed(name))
        for name in ("Cargo.toml", "src/lib.rs"):
            replace(self.path / "crates/mutation_switch" / name, (SWITCH / name).read_bytes())
        for path in (self.path / "crates").rglob("*"):
            name = str(path.relative_to(self.path))
            if path.is_file() and name not in names and not name.startswith("crates/mutation_switch/"):
                path.unlink()

    def changed(self, name):
        """What stands in a file of the copy."""
        if name == f"crates/{self.crate}/Cargo.toml":
            switch = b'[dependencies]\nmutation_switch = { path = "../mutation_switch" }\n'
            return (ROOT / name).read_bytes().replace(b"[dependencies]\n", switch, 1)
        text = self.files[name].render(self.dropped) if name in self.files else (ROOT / name).read_bytes()
        if name == f"crates/{self.crate}/src/lib.rs":
            text = b"#![allow(unused)]\n" + text
        if name in self.files:
            self.texts[name], self.stretches[name] = text, mutant_sources.marked(text)
        return text

    def cargo(self, *arguments):
        """Runs cargo; whether it succeeded, and its messages."""
        command = ["cargo", *arguments, "--offline", "--package", f"clearway-{self.crate}", "--message-format", "json"]
        found = subprocess.run(command, cwd=self.path, env=self.environment(), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        messages = [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")]
        if found.returncode != 0 and not any(message["reason"] == "compiler-message" for message in messages):
            sys.exit(found.stderr)
        return found.returncode == 0, messages

    def drop(self, messages):
        """Takes out the mutants that errors are blamed on; whether there were any."""
        before = len(self.dropped)
        for error in errors(messages):
            for span in error["spans"]:
                if span["is_primary"]:
                    self.blame(span)
        return len(self.dropped) > before

    def blame(self, span):
        while span and span["file_name"] not in self.stretches:
            span = (span.get("expansion") or {}).get("span")
        if not span:
            return
        name, start, end = span["file_name"], span["byte_start"], span["byte_end"]
        numbers, own = mutant_sources.blamed(self.stretches[name], self.texts[name], start, end)
        for name in (self.names[number] for number in numbers):
            # Another result of a function that hides its type is refused beside the old one, and may do alone.
            self.dropped.setdefault(name, "unviable" if own and " -> impl " not in name else "alone")

    def build(self, suites):
        """The test programs, with all mutants that compile; only these, if any are named."""
        chosen = [f"--test={suite}" for suite in suites]
        steps = [("check",), ("check", *(chosen or ["--tests"])), ("test", "--no-run", *chosen)]
        steps = steps[2 if self.taken_out.exists() else 0:]
        while steps:
            self.write()
            succeeded, messages = self.cargo(*steps[0])
            if succeeded:
                steps.pop(0)
            elif not self.drop(messages):
                sys.exit("\n".join(error["rendered"] for error in errors(messages)))
            print(f"{len(self.names)} mutants, {len(self.dropped)} taken out", file=sys.stderr, flush=True)
        replace(self.taken_out, json.dumps(self.dropped).encode())
        return [message["executable"] for message in messages
                if message["reason"] == "compiler-artifact" and message["executable"] and message["profile"]["test"]]


def errors(messages):
    """The compiler's errors among cargo's messages."""
    found = [message["message"] for message in messages if message["reason"] == "compiler-message"]
    return [message for message in found if message["level"] == "error"]


def replace(path, text):
    """Writes the file if it is to change."""
    if not path.exists() or path.read_bytes() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


@dataclasses.dataclass
class Test:
    program: str
    name: str
    # What it takes by its own clock.
    seconds: float = 0.0
    # How many mutants it reaches.
    reaches: int = 0

    def __str__(self):
        return f"{pathlib.Path(self.program).name.rpartition('-')[0]}::{self.name}"

    def run(self, tree, variables, seconds_max):
        """"passed", "failed" or "timed out". What the test leaves behind is removed."""
        with tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as directory:
            variables = {**variables, "TMPDIR": directory, "RUST_BACKTRACE": "0", "RUST_TEST_THREADS": "2"}
            process = subprocess.Popen(
                [self.program, "--exact", self.name], cwd=tree.path / "crates" / tree.crate, start_new_session=True,
                env={**tree.environment(), **variables},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                own_seconds = watch(process, seconds_max)
            finally:
                # It is not waited for yet, so the number is its own.
                os.killpg(process.pid, signal.SIGKILL)
                code = process.wait()
        self.seconds = self.seconds or own_seconds
        return "passed" if code == 0 else "timed out" if own_seconds > seconds_max else "failed"


def watch(process, seconds_max):
    """Waits for the process, and ends it if it has no end; how long it took by its own clock."""
    descriptor = os.pidfd_open(process.pid)
    ended = select.poll()
    ended.register(descriptor, select.POLLIN)
    try:
        return own_clock.watch(process, seconds_max, lambda seconds: bool(ended.poll(seconds * 1000)))
    finally:
        os.close(descriptor)


def tests(programs):
    """All tests of the programs that are not ignored."""
    def named(program, *arguments):
        command = [program, "--list", "--format", "terse", *arguments]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        return [line.removesuffix(": test") for line in lines if line.endswith(": test")]
    for program in programs:
        ignored = set(named(program, "--ignored"))
        yield from (Test(program, name) for name in named(program) if name not in ignored)


def record(tree, test):
    """The mutants that the test reaches; `None` if it fails without any mutant."""
    with tempfile.NamedTemporaryFile() as marks:
        marks.write(bytes(max(len(tree.names), 1)))
        marks.flush()
        for _ in range(2):
            if test.run(tree, {"MUTANT": "record", "MUTANTS_REACHED": marks.name}, 600) != "passed":
                return None
            if test.seconds > SHORT_SECONDS:
                break
        found = pathlib.Path(marks.name).read_bytes()
    return [number for number, byte in enumerate(found) if byte]


def recorded(tree, test):
    """The same, from what was written down before, if the program is the same."""
    path = tree.path / "target/reached" / pathlib.Path(test.program).name / test.name.replace("::", ".")
    if path.exists() and path.stat().st_mtime > os.stat(test.program).st_mtime:
        found = json.loads(path.read_text())
        test.seconds = found["seconds"]
        return found["mutants"]
    numbers = record(tree, test)
    if numbers is not None:
        replace(path, json.dumps({"seconds": test.seconds, "mutants": numbers}).encode())
    return numbers


class Campaign:
    """Which tests reach each mutant, and which caught what so far."""

    def __init__(self, tree, programs, seconds_max):
        self.tree, self.seconds_max = tree, seconds_max
        self.reaching = [[] for _ in tree.names]
        self.caught_in = {}
        self.lock = threading.Lock()
        found = list(tests(programs))
        for test in found:
            numbers = recorded(tree, test)
            if numbers is None:
                print(f"left out, since it fails without any mutant: {test}", file=sys.stderr, flush=True)
            test.reaches = len(numbers or ())
            for number in numbers or ():
                self.reaching[number].append(test)
        seconds = sum(test.seconds for test in found)
        print(f"{len(found)} tests, which take {seconds:.0f} s", file=sys.stderr, flush=True)

    def ordered(self, number):
        """The tests of a mutant in the order in which they are run."""
        with self.lock:
            favoured = set(self.caught_in.get(function(self.tree.names[number]), ()))
        found = [test for test in self.reaching[number] if test.seconds <= self.seconds_max]
        return sorted(found, key=lambda test: (str(test) not in favoured, test.seconds * test.reaches))

    def run(self, number):
        """Outcome of a mutant and the test that says so."""
        for test in self.ordered(number):
            outcome = test.run(self.tree, {"MUTANT": str(number)}, 3 + 5 * test.seconds)
            if outcome != "passed":
                with self.lock:
                    self.caught_in.setdefault(function(self.tree.names[number]), []).append(str(test))
                return {"failed": "caught", "timed out": "timed out"}[outcome], str(test)
        return "missed", ""


def function(name):
    """File and function of a mutant: what its name says behind "in", or between "replace" and "->"."""
    file, _, rest = name.partition(":")
    inside = rest.rpartition(" in ")[2] if " in " in rest else rest.partition("replace ")[2].partition(" ->")[0]
    return file, inside


def run(crate, mutants, chosen, results, label, repeat, jobs, seconds_max, suites):
    """Runs the chosen ones of all mutants that have no outcome under this label; not those that need a build each."""
    tree = Tree(crate, mutants)
    programs = tree.build(suites)
    for name, why in tree.dropped.items():
        if why == "unviable" and results.find(name, label) is None:
            results.add(label, "unviable", name)
    due = [number for number, name in enumerate(tree.names)
           if name in chosen and name not in tree.dropped and results.find(name, label) in (None, repeat)]
    if not due:
        return
    campaign = Campaign(tree, programs, seconds_max)
    resource.setrlimit(resource.RLIMIT_DATA, (BYTES_MAX, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    details = (ROOT / f"target/mutants/{crate}-{label}.tsv").open("a")

    def one(number):
        begin = time.monotonic()
        outcome, test = campaign.run(number)
        name = tree.names[number]
        with campaign.lock:
            results.add(label, outcome, name)
            print(outcome, f"{time.monotonic() - begin:.2f}", len(campaign.reaching[number]), name, test,
                  sep="\t", file=details, flush=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as workers:
        for done, _ in enumerate(workers.map(one, due), 1):
            if done % 50 == 0 or done == len(due):
                print(f"{done} of {len(due)}", file=sys.stderr, flush=True)
