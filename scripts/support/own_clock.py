"""How long a program runs by a clock of its own, so that a busy machine does not make it look endless.

That clock leaves out the time that the program's threads spend ready to run without a CPU: of all threads', the longest in
each sample. Threads that sleep and look up from time to time do not make it look busy. It takes at least an eighth of the
time by the wall clock: a thread that yields in a loop is ready to run nearly all the time.
"""
import os
import pathlib
import signal
import time

SAMPLE_SECONDS = 0.5
OWN_SHARE_MIN = 1 / 8


def family(parent):
    """The process and all below it."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = pathlib.Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry))
    members = [parent]
    for member in members:
        members += parents.get(member, [])
    return members


def delays(members):
    """For how many seconds each of their threads has been ready to run without a CPU."""
    found = {}
    for member in members:
        for path in pathlib.Path("/proc", str(member), "task").glob("*/schedstat"):
            try:
                found[path] = int(path.read_text().split()[1]) / 1e9
            except OSError:
                pass
    return found


def end(members):
    for member in members:
        try:
            os.kill(member, signal.SIGKILL)
        except ProcessLookupError:
            pass


def watch(process, seconds_max, wait, report=lambda: None):
    """Ends the process and all below it when its own time is over, after a call of `report`; how long it ran.

    `wait(seconds)` waits at most so long and says whether the process has ended.
    """
    own_seconds, delayed_before, last = 0.0, {}, time.monotonic()
    while not wait(SAMPLE_SECONDS):
        members = family(process.pid)
        delayed, now = delays(members), time.monotonic()
        longest = max((delay - delayed_before.get(path, 0.0) for path, delay in delayed.items()), default=0.0)
        own_seconds += max(now - last - longest, (now - last) * OWN_SHARE_MIN)
        delayed_before, last = delayed, now
        if own_seconds > seconds_max:
            report()
            end(members)
            return own_seconds
    return own_seconds + time.monotonic() - last
