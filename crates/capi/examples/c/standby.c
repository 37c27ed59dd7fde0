/* A standby: one thread replays which transactions of another server begin and end, others ask which of them run. */
#include <pthread.h>
#include <stdio.h>

#include "clearway.h"

enum { READERS = 3, ROUNDS = 20000, SNAPSHOTS = 1000, SESSIONS = 4 };

static clearway_known_xids_t *known;
static unsigned long torn, failures, taken;
/* The oldest transaction that still runs when all is replayed. */
static clearway_xid_t last;
static int ended;

static void fail(void) {
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

/* Transactions with even numbers have one subtransaction each, which has the next number and ends with them. */
static void *replay(void *unused) {
    clearway_replayed_xids_t *replayed = clearway_known_xids_replay(known);
    if (replayed == NULL || clearway_known_xids_replay(known) != NULL) {
        fail();
        __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
        return unused;
    }
    if (clearway_replayed_xids_add(replayed, 100, 101) != CLEARWAY_KNOWN_XIDS_UNKNOWN)
        fail();
    clearway_xid_t running[] = {100, 101};
    clearway_running_record_t record = {.next = 102, .oldest_running = 100, .newest_ended = 99, .running = running};
    record.running_count = 2;
    if (clearway_replayed_xids_apply(replayed, &record) != CLEARWAY_KNOWN_XIDS_OK)
        fail();
    clearway_xid_t xid = 102;
    for (; xid < 102 + 2 * ROUNDS || __atomic_load_n(&taken, __ATOMIC_RELAXED) < SNAPSHOTS; xid += 2) {
        if (clearway_replayed_xids_add(replayed, xid, xid + 1) != CLEARWAY_KNOWN_XIDS_OK)
            fail();
        clearway_xid_t child = xid - 1;
        clearway_replayed_xids_remove(replayed, xid - 2, &child, 1);
    }
    if (clearway_replayed_xids_add(replayed, 100, 101) != CLEARWAY_KNOWN_XIDS_OUT_OF_ORDER)
        fail();
    clearway_replayed_xids_idle(replayed);
    clearway_replayed_xids_free(replayed);
    last = xid - 2;
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    return unused;
}

static void *ask(void *unused) {
    clearway_running_xids_t *running = clearway_running_xids_new();
    clearway_xid_t newest = 0;
    for (int is_last = 0; !is_last;) {
        is_last = __atomic_load_n(&ended, __ATOMIC_ACQUIRE);
        clearway_known_xids_result_t result = clearway_known_xids_snapshot(known, running);
        if (result == CLEARWAY_KNOWN_XIDS_NOT_COMPLETE)
            continue;
        if (result != CLEARWAY_KNOWN_XIDS_OK)
            fail();
        uintptr_t count;
        const clearway_xid_t *list = clearway_running_xids_list(running, &count);
        clearway_xid_t end = clearway_running_xids_end(running);
        for (uintptr_t at = 0; at < count; at++) {
            clearway_xid_t parent = list[at] & ~(clearway_xid_t)1;
            /* Both run, or both have ended. */
            if (!clearway_running_xids_is_running(running, parent) ||
                !clearway_running_xids_is_running(running, parent + 1))
                __atomic_fetch_add(&torn, 1, __ATOMIC_RELAXED);
        }
        if (clearway_running_xids_oldest(running) != (count > 0 ? list[0] : end) || end < newest)
            fail();
        newest = end;
        __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    }
    /* The last one runs, and none before it. */
    if (!clearway_running_xids_is_running(running, last) || clearway_running_xids_is_running(running, last - 1))
        fail();
    clearway_running_xids_free(running);
    return unused;
}

int main(void) {
    known = clearway_known_xids_new(SESSIONS, 0);
    pthread_t threads[READERS + 1];
    for (unsigned at = 0; at <= READERS; at++) {
        if (pthread_create(&threads[at], NULL, at < READERS ? ask : replay, NULL)) {
            perror("pthread_create");
            return 1;
        }
    }
    for (unsigned at = 0; at <= READERS; at++)
        pthread_join(threads[at], NULL);
    clearway_known_xids_free(known);
    printf("%lu snapshots, %lu torn, %lu failures\n", taken, torn, failures);
    return torn == 0 && failures == 0 && taken >= SNAPSHOTS ? 0 : 1;
}
