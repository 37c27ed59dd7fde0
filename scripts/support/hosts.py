"""Two hosts: network namespaces with an address each, and a cable between them that fails as networks do.

The kernel's `netem` is not everywhere, so the cable is a thread: each namespace has a TAP device, and each Ethernet frame
that leaves one passes through here on its way to the other. What it drops, delays and reorders are frames, below TCP: both
hosts' own TCP has to put up with it. (`link.py` fails above TCP, and changes bytes.)
"""

import atexit
import fcntl
import heapq
import os
import pathlib
import random
import select
import struct
import subprocess
import threading
import time

from . import tools

# Of linux/if_tun.h.
TUNSETIFF = 0x4004_54CA
IFF_TAP, IFF_NO_PI = 0x2, 0x1000
FRAME_MAX = 65_536


class Host:
    """A namespace with the address `address`."""

    def __init__(self, name, address):
        self.name = name
        self.address = address
        self.tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        device = name.encode()
        fcntl.ioctl(self.tap, TUNSETIFF, struct.pack("16sH22x", device, IFF_TAP | IFF_NO_PI))
        run("ip", "netns", "add", name)
        run("ip", "link", "set", name, "netns", name)
        run("ip", "-n", name, "addr", "add", f"{address}/30", "dev", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "link", "set", name, "up")

    def command(self, *command):
        """A command that runs on this host."""
        return [tools.find("ip"), "netns", "exec", self.name, *map(str, command)]

    def close(self):
        # The device goes with its last descriptor.
        os.close(self.tap)
        subprocess.run([tools.find("ip"), "netns", "del", self.name], capture_output=True)


def run(*command):
    done = subprocess.run([tools.find(command[0]), *command[1:]], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


class TwoHosts:
    """`one` and `two`, joined by a cable."""

    KINDS = ["cut", "delay", "reorder", "lose"]

    def __init__(self, seed):
        tools.need("ip")
        if os.geteuid() != 0 or not pathlib.Path("/dev/net/tun").exists():
            raise RuntimeError("two hosts on one machine need root, network namespaces and /dev/net/tun")
        self.random = random.Random(seed)
        self.until = dict.fromkeys(self.KINDS, 0.0)
        # Frames that were dropped, delayed, overtaken.
        self.done = dict.fromkeys(self.KINDS, 0)
        self.closing = threading.Event()
        number = os.getpid() % 100_000
        # Addresses for benchmarks between networks, which no one else has in these namespaces.
        self.one = Host(f"cw{number}a", "198.18.0.1")
        self.two = Host(f"cw{number}b", "198.18.0.2")
        atexit.register(self.close)
        self.thread = threading.Thread(target=self._carry, daemon=True)
        self.thread.start()

    def disturb(self, kind, seconds):
        """For this time `cut` drops each frame, `lose` one in ten; `delay` takes 30 ms for each, and `reorder` lets one in
        five arrive 2 to 12 ms later than the others."""
        self.until[kind] = time.monotonic() + seconds

    def cut(self):
        """No frame passes until `heal`."""
        self.disturb("cut", float("inf"))

    def heal(self):
        self.until = dict.fromkeys(self.KINDS, 0.0)

    def close(self):
        if self.closing.is_set():
            return
        self.closing.set()
        self.thread.join(10)
        self.one.close()
        self.two.close()

    def _is(self, kind, now):
        if self.until[kind] <= now:
            return False
        if kind == "lose" and self.random.random() >= 0.1 or kind == "reorder" and self.random.random() >= 0.2:
            return False
        self.done[kind] += 1
        return True

    def _carry(self):
        other = {self.one.tap: self.two.tap, self.two.tap: self.one.tap}
        held, count = [], 0
        while not self.closing.is_set():
            now = time.monotonic()
            while held and held[0][0] <= now:
                _, _, tap, frame = heapq.heappop(held)
                self._put(tap, frame)
            patience = min(0.05, held[0][0] - now) if held else 0.05
            ready, _, _ = select.select(list(other), [], [], patience)
            for tap in ready:
                for _ in range(64):
                    try:
                        frame = os.read(tap, FRAME_MAX)
                    except BlockingIOError:
                        break
                    now = time.monotonic()
                    if self._is("cut", now) or self._is("lose", now):
                        continue
                    late = 0.03 if self._is("delay", now) else 0.0
                    late += self.random.uniform(0.002, 0.012) if self._is("reorder", now) else 0.0
                    if late > 0 or held and self.until["delay"] > now:
                        count += 1
                        heapq.heappush(held, (now + late, count, other[tap], frame))
                    else:
                        self._put(other[tap], frame)

    @staticmethod
    def _put(tap, frame):
        try:
            os.write(tap, frame)
        except OSError:
            # A full queue, or a device that is going: the frame is lost, as on a network.
            pass
