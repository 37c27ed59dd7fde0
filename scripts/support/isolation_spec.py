"""PostgreSQL's isolation specs: sessions with named steps, and permutations of the steps.

    setup { sql }  teardown { sql }
    session NAME  setup { sql }  step NAME { sql }  …  teardown { sql }
    permutation STEP STEP(MARKER, …) …

Without permutations all orders count that keep each session's own. A marker is `*` (the step may be found waiting or not),
another step (this one's end is told behind that one's), or `STEP notices N`; it concerns the order in which an outcome is
told, and outcomes are told in one order here.
"""

import re
from dataclasses import dataclass, field

TOKEN = re.compile(r'\s+|\#[^\n]*|\{(?P<sql>[^}]*)\}|"(?P<quoted>[^"]*)"|(?P<word>[\w.-]+)|(?P<symbol>[(),*])')


@dataclass
class Session:
    name: str
    setup: str = ""
    teardown: str = ""
    steps: dict = field(default_factory=dict)


@dataclass
class Spec:
    name: str
    setups: list = field(default_factory=list)
    teardown: str = ""
    sessions: list = field(default_factory=list)
    permutations: list = field(default_factory=list)

    def session_of(self, step):
        """The number of the session that has the step."""
        return next(number for number, session in enumerate(self.sessions) if step in session.steps)

    def sql_of(self, step):
        return self.sessions[self.session_of(step)].steps[step]

    def orders(self):
        """The permutations to run: lists of steps, each with whether its wait is left open (`*`)."""
        if self.permutations:
            return self.permutations
        return [[(step, False) for step in order] for order in interleaved([list(one.steps) for one in self.sessions])]


def interleaved(queues):
    """All orders of the elements of some lists in which each list keeps its own."""
    if not any(queues):
        yield []
    for number, queue in enumerate(queues):
        if queue:
            for rest in interleaved([*queues[:number], queue[1:], *queues[number + 1 :]]):
                yield [queue[0], *rest]


def tokens(text):
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"cannot be read from here: {text[at : at + 40]!r}")
        at = found.end()
        for kind in ("sql", "quoted", "word", "symbol"):
            if found[kind] is not None:
                yield kind, found[kind]


class Reader:
    def __init__(self, text):
        self.tokens, self.at = list(tokens(text)), 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def next(self, *kinds):
        kind, value = self.peek()
        if kinds and kind not in kinds:
            raise ValueError(f"{value!r} where {' or '.join(kinds)} is expected")
        self.at += 1
        return value

    def name(self):
        return self.next("word", "quoted")

    def block(self):
        return self.next("sql").strip()


def read(name, text):
    """The spec in a file's text."""
    spec, reader = Spec(name), Reader(text)
    while reader.peek()[0] != "end":
        word, inside = reader.next("word"), spec.sessions[-1] if spec.sessions else None
        if word == "setup" and inside is None:
            spec.setups.append(reader.block())
        elif word == "setup":
            inside.setup = reader.block()
        elif word == "teardown" and inside is None:
            spec.teardown = reader.block()
        elif word == "teardown":
            inside.teardown = reader.block()
        elif word == "session":
            spec.sessions.append(Session(reader.name()))
        elif word == "step":
            step = reader.name()
            inside.steps[step] = reader.block()
        elif word == "permutation":
            spec.permutations.append(permutation(reader))
        else:
            raise ValueError(f"'{word}' begins nothing")
    return spec


def permutation(reader):
    steps = []
    while reader.peek()[0] == "quoted" or reader.peek()[0] == "word" and reader.peek()[1] not in ("permutation", "session"):
        step, open_wait = reader.name(), False
        if reader.peek() == ("symbol", "("):
            reader.next()
            while reader.peek() != ("symbol", ")"):
                open_wait |= reader.next() == "*"
            reader.next()
        steps.append((step, open_wait))
    return steps
