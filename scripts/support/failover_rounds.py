"""Failovers of a real cluster: three nodes, three processes of etcd, and clients that append to lists.

Each round one thing fails while the clients append (support/list_append.py); it stays so for twice the time to live or so,
and then everything runs again. After each round:

  1. every append that was acknowledged, late answers of stopped servers included, is in the lists, and the answers are those
     of one order: no two primaries have acknowledged;
  2. the cluster is whole again: one leads, the others follow, one is synchronous.

The report also says how many directories were rewound, and how many were copied anew.

    scripts/failover                  six of the faults, once each
    scripts/failover --rounds 200     the campaign
    scripts/failover --fault "stop primary" --rounds 5

The report gives the time without an acknowledgement by fault. A partition closes gates between processes of this machine
(support/gate.py): nothing that is sent on a closed link arrives before it is open again. A slow disk is a library that is
preloaded (support/slow_disk.c).
"""

import argparse
import pathlib
import random
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import cluster, list_append, servers, tools  # noqa: E402

HOLD_SECONDS = 2 * cluster.TTL_SECONDS


def standby_of(trial, primary, is_synchronous):
    status = trial.status()
    names = [m["name"] for m in status["members"] if m["synchronous"] == is_synchronous and m["name"] != primary.name]
    return next(node for node in trial.nodes if node.name in names)


def kill_primary(trial, primary):
    primary.kill()


def stop_primary(trial, primary):
    primary.stop()


def cut_primary_from_etcd(trial, primary):
    primary.cut_from_etcd(True)


def cut_primary_off(trial, primary):
    primary.cut_from_etcd(True)
    primary.replication.closed_for = set(trial.names)


def cut_standby_from_primary(trial, primary):
    primary.replication.closed_for = {standby_of(trial, primary, True).name}


def kill_standby(trial, primary):
    standby_of(trial, primary, True).kill()


def stop_standby(trial, primary):
    standby_of(trial, primary, True).stop()


def leader_of_etcd(trial):
    leaders = [etcd for etcd in trial.etcds if etcd.leads()]
    return leaders[0] if leaders else trial.etcds[0]


def kill_etcd(trial, primary):
    leader_of_etcd(trial).kill()


def stop_etcd(trial, primary):
    leader_of_etcd(trial).stop()


def await_etcd(what, holds):
    """A cut that etcd does not notice is none."""
    deadline = time.monotonic() + HOLD_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise list_append.Wrong(f"after {HOLD_SECONDS} s {what}")
        time.sleep(0.05)


def cut_leader_of_etcd_off(trial, primary):
    leader = leader_of_etcd(trial)
    others = [etcd for etcd in trial.etcds if etcd is not leader]
    leader.cut_from(others)
    await_etcd("no other member of etcd leads", lambda: any(other.leads() for other in others))


def cut_leader_of_etcd_from_one(trial, primary):
    leader = leader_of_etcd(trial)
    other = next(etcd for etcd in trial.etcds if etcd is not leader)
    other.cut_from([leader])
    await_etcd("a member of etcd knows its leader", lambda: other.leader() == 0)


def slow_down_primary(trial, primary):
    primary.slow_down(True)


def slow_down_standby(trial, primary):
    standby_of(trial, primary, True).slow_down(True)


def switch_over(trial, primary):
    done = trial.switchover(standby_of(trial, primary, True).name)
    if done.returncode != 0:
        raise list_append.Wrong(f"the switchover failed: {done.stderr}")


FAULTS = {
    "kill primary": kill_primary, "stop primary": stop_primary, "switchover": switch_over,
    "cut primary from etcd": cut_primary_from_etcd, "kill leader of etcd": kill_etcd,
    "cut primary off": cut_primary_off, "stop leader of etcd": stop_etcd, "kill standby": kill_standby,
    "stop standby": stop_standby, "cut standby from primary": cut_standby_from_primary,
    "cut leader of etcd off": cut_leader_of_etcd_off, "cut leader of etcd from one": cut_leader_of_etcd_from_one,
    "slow disk of primary": slow_down_primary, "slow disk of standby": slow_down_standby,
}
# Those of the short form.
SHORT = ["kill primary", "stop primary", "switchover", "cut primary from etcd", "stop leader of etcd", "kill standby"]


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=0, help="random faults; without, each fault of the short form once")
    parser.add_argument("--fault", choices=list(FAULTS), action="append", help="only these")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    return parser.parse_args()


def check_promotions(trial):
    """A standby is promoted by its cluster alone."""
    standby = next(node for node in trial.nodes if node.check("/primary") != 200)
    for command, refusal in [
        ([trial.binary, "promote", "--data", standby.data], "member of a cluster"),
        ([tools.find("psql"), "-Xc", "select pg_promote()", "-h", "127.0.0.1", "-p", str(standby.port), "-U", "clearway",
          "postgres"], "cannot be promoted by a session"),
    ]:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        if done.returncode == 0 or refusal not in done.stderr:
            raise list_append.Wrong(f"a standby was promoted, or the refusal was another one: {done.stdout}{done.stderr}")


def play(trial, clients, fault):
    """One round; the longest time without an acknowledgement, the number of acknowledgements, and late ones."""
    trial.await_whole()
    clients.begin()
    time.sleep(0.7)
    if trial.primary() is None:
        print("no node leads before the fault, in a slow moment", flush=True)
        trial.await_whole()
    primary = trial.await_primary()
    began = time.monotonic()
    FAULTS[fault](trial, primary)
    time.sleep(HOLD_SECONDS)
    trial.heal()
    trial.await_whole()
    time.sleep(0.3)
    late = clients.end()
    count = clients.check()
    return clients.longest_gap(began), count, late


def parted(trial):
    """The numbers of directories that were rewound, and that were copied anew: log of their own was given up."""
    logs = [node.log.read_text(errors="replace") for node in trial.nodes]
    return [sum(log.count(words) for log in logs) for words in ("that only it has is given up", "now, and is copied anew")]


def main():
    chosen = options()
    tools.need("etcd", "psql")
    print(f"seed {chosen.seed}", flush=True)
    chance = random.Random(chosen.seed)
    faults = chosen.fault or (list(FAULTS) if chosen.rounds else SHORT)
    order = faults if not chosen.rounds else [chance.choice(faults) for _ in range(chosen.rounds)]
    directory = servers.scratch("failover")
    trial = cluster.Cluster(directory)
    trial.have_slow_disks(directory)
    trial.start()
    clients = list_append.Appenders(trial)
    gaps, total = {}, 0
    began = time.monotonic()
    try:
        trial.await_whole()
        check_promotions(trial)
        for number, fault in enumerate(order, 1):
            gap, count, late = play(trial, clients, fault)
            gaps.setdefault(fault, []).append(gap)
            total += count
            print(f"round {number}: {fault}: {count} acknowledged, {late} of them late, none lost; {gap:.2f} s without "
                  f"({time.monotonic() - began:.0f} s so far)", flush=True)
        rewound, copied = parted(trial)
    except (list_append.Wrong, RuntimeError) as failure:
        print(f"FAILED: {failure}\n--seed {chosen.seed}\n{trial.logs()}", file=sys.stderr)
        sys.exit(1)
    finally:
        trial.kill()
    print(f"after {len(order)} rounds, {rewound} rewinds and {copied} copies none of {total} acknowledged appends is lost; "
          f"seconds without a primary, by fault (lease {cluster.TTL_SECONDS} s):")
    for fault, seconds in gaps.items():
        print(f"  {fault:26} median {statistics.median(seconds):5.2f}  most {max(seconds):5.2f}  rounds {len(seconds)}")


if __name__ == "__main__":
    main()
