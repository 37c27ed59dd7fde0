"""CPU time of a process' threads, by their names.

The figures are those of the scheduler, in nanoseconds: `/proc/PID/task/TID/schedstat`, whose first number is the time on a
CPU. `/proc/PID/schedstat` has that of the first thread alone, and `/proc/PID/stat` counts ticks of 10 ms. What a thread has
used does not depend on how long it had to wait for a CPU.
"""

import pathlib

# Linux keeps so much of a thread's name.
NAME_BYTES = 15


class ThreadTime:
    """Threads whose names are among `names`, or begin with one of them that ends with `*`."""

    def __init__(self, process, *names):
        self.tasks = pathlib.Path("/proc") / str(process) / "task"
        self.names = names
        # By thread: those that have ended count on with the last figure that was read.
        self.used = {}

    def _is_meant(self, name):
        return any(
            name.startswith(wanted[:-1][:NAME_BYTES]) if wanted.endswith("*") else name == wanted[:NAME_BYTES]
            for wanted in self.names
        )

    def nanoseconds(self):
        """What they have used up to now."""
        for task in self.tasks.iterdir():
            try:
                if self._is_meant((task / "comm").read_text().rstrip("\n")):
                    self.used[task.name] = int((task / "schedstat").read_text().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                # It has ended since the directory was listed.
                continue
        return sum(self.used.values())
