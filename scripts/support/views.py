"""What a primary and its standby say about themselves, compared with what is true."""

import time

from .servers import position

STREAMS = "startup|Activity|RecoveryWalStream\nwalreceiver|Activity|WalReceiverMain"
THREADS = (
    "select backend_type, wait_event_type, wait_event from pg_stat_activity"
    " where backend_type in ('startup', 'walreceiver') order by 1"
)


class Lie(Exception):
    """A view does not show what is so."""


def await_shown(server, query, wanted, seconds=60):
    """Waits until `server` shows `wanted`."""
    deadline = time.monotonic() + seconds
    while (shown := server.sql(query)) != wanted:
        if time.monotonic() > deadline:
            raise Lie(f"{server.name}: {query}\nshows\n{shown}\nfor {seconds} s, not\n{wanted}")
        time.sleep(0.02)


def check_slot(primary, standby):
    """The primary keeps the log that its standby does not have: asked for in this order, the slot's position is not ahead."""
    kept = primary.sql("select restart_lsn from pg_replication_slots where slot_name = 'standby'")
    if not kept:
        raise Lie("the slot keeps nothing")
    received = standby.sql("select pg_last_wal_receive_lsn()")
    if position(kept) > position(received):
        raise Lie(f"the slot keeps log from {kept} on, and the standby has it up to {received} only")


def check_alone(standby):
    """A standby whose primary has gone says so, and answers."""
    await_shown(standby, THREADS, "startup|Timeout|RecoveryRetrieveRetryInterval")
    status = standby.sql("select status from pg_stat_wal_receiver")
    if status not in ("starting", "waiting"):
        raise Lie(f"the primary is gone, and the receiver is {status!r}")
    if standby.sql("select pg_is_in_recovery()") != "t":
        raise Lie("the primary is gone, and the standby is none")


def check_left(primary):
    """A primary whose standby has gone says so."""
    await_shown(primary, "select count(*) from pg_stat_replication", "0")
    await_shown(primary, "select slot_name, active from pg_replication_slots", "standby|f")
    await_shown(primary, "select count(*) from pg_stat_activity where backend_type = 'walsender'", "0")


def check_both(primary, standby, synchronous):
    """Both run, and the standby follows: each says so, and whoever says that log arrives has it arrive."""
    # A message that was lost is noticed when there are more: what follows needs some.
    mark = primary.sql("select pg_current_wal_insert_lsn()")
    primary.sql("update mark set moved = moved + 1")
    await_shown(standby, f"select pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '{mark}') > 0", "t", 60)
    await_shown(standby, THREADS, STREAMS)
    await_shown(standby, "select status from pg_stat_wal_receiver", "streaming")
    kind = "sync" if synchronous else "async"
    await_shown(
        primary, "select application_name, state, sync_state from pg_stat_replication", f"standby|streaming|{kind}"
    )
    await_shown(
        primary, "select application_name, state from pg_stat_activity where backend_type = 'walsender'", "standby|active"
    )
    await_shown(primary, "select slot_name, active, wal_status from pg_replication_slots", "standby|t|reserved")
    for server, recovers in ((primary, "f"), (standby, "t")):
        if server.sql("select pg_is_in_recovery()") != recovers:
            raise Lie(f"{server.name}: pg_is_in_recovery() is not {recovers}")
    check_slot(primary, standby)
    check_positions(primary, standby)


def check_positions(primary, standby):
    """What each says of the standby's positions, asked for in the order in which they grow."""
    told = primary.sql("select replay_lsn, flush_lsn, write_lsn, sent_lsn from pg_stat_replication").split("|")
    there = standby.sql(
        "select pg_last_wal_replay_lsn(), flushed_lsn, pg_last_wal_receive_lsn() from pg_stat_wal_receiver"
    ).split("|")
    end = primary.sql("select pg_current_wal_flush_lsn()")
    replay, flush, write, sent = map(position, told)
    replayed, flushed, received = map(position, there)
    if not replay <= flush <= write <= sent <= position(end):
        raise Lie(f"pg_stat_replication: replayed, flushed, written, sent {told}, of log up to {end}")
    if replay > replayed or flush > received:
        raise Lie(f"the primary says that {told[:2]} are replayed and durable on the standby, which says {there}")
    if not replayed <= received <= position(end) or flushed > received:
        raise Lie(f"the standby has replayed, flushed and received {there}, of log up to {end}")
