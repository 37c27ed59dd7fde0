/* Rows in versions: transfers between two accounts, some rolled back, beside readers whose sum is always the same. */
#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "clearway.h"

enum { WRITERS = 2, READERS = 2, ROUNDS = 2000, ACCOUNTS = 2, PAGES = 4, TOTAL = 100 };

struct version {
    clearway_xid_t xid;
    long balance;
};

struct account {
    struct version versions[WRITERS * ROUNDS + 1];
    unsigned count;
};

static struct account accounts[ACCOUNTS];
/* Guards the lists of versions; many read, few write. */
static alignas(CLEARWAY_READ_BIASED_ALIGNMENT) unsigned char latch_memory[CLEARWAY_READ_BIASED_SIZE];
static clearway_read_biased_t *latch;
/* One transfer at a time: the accounts' locks, until a transfer ends. */
static clearway_mutex_t transfer_lock = CLEARWAY_MUTEX_INIT;
static clearway_proc_array_t *array;
static clearway_commit_log_t *status_log;
static unsigned long wrong_sums, failures;

/* The device of the commit log: pages in memory. */
static clearway_mutex_t pages_mutex = CLEARWAY_MUTEX_INIT;
static unsigned char pages[PAGES][CLEARWAY_COMMIT_LOG_PAGE_SIZE];
static unsigned char is_written[PAGES];

static int read_page(void *context, uint32_t number, uint8_t *page) {
    (void)context;
    if (number >= PAGES)
        return -ENOSPC;
    clearway_mutex_lock(&pages_mutex);
    int found = is_written[number];
    if (found)
        memcpy(page, pages[number], CLEARWAY_COMMIT_LOG_PAGE_SIZE);
    clearway_mutex_unlock(&pages_mutex);
    return found;
}

static int write_page(void *context, uint32_t number, const uint8_t *page, uint64_t lsn) {
    (void)context;
    (void)lsn;
    if (number >= PAGES)
        return -ENOSPC;
    clearway_mutex_lock(&pages_mutex);
    memcpy(pages[number], page, CLEARWAY_COMMIT_LOG_PAGE_SIZE);
    is_written[number] = 1;
    clearway_mutex_unlock(&pages_mutex);
    return 0;
}

static const clearway_status_device_t device = {NULL, read_page, write_page};

static void fail(void) {
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

/* The newest version that the snapshot sees. */
static long balance_of(const struct account *account, const clearway_snapshot_t *snapshot) {
    for (unsigned at = account->count; at > 0; at--) {
        const struct version *version = &account->versions[at - 1];
        bool sees = false;
        if (clearway_snapshot_sees(snapshot, version->xid, status_log, &sees) != 0)
            fail();
        if (sees)
            return version->balance;
    }
    fail();
    return 0;
}

static void add_version(struct account *account, clearway_xid_t xid, long balance) {
    clearway_read_biased_held_t held;
    clearway_read_biased_lock_exclusive(latch, &held);
    account->versions[account->count].xid = xid;
    account->versions[account->count].balance = balance;
    account->count++;
    clearway_read_biased_unlock_exclusive(&held);
}

static void read_balances(const clearway_snapshot_t *snapshot, long balances[ACCOUNTS]) {
    clearway_read_biased_held_t held;
    clearway_read_biased_lock_shared(latch, &held);
    for (unsigned at = 0; at < ACCOUNTS; at++)
        balances[at] = balance_of(&accounts[at], snapshot);
    clearway_read_biased_unlock_shared(&held);
}

static void *transfer(void *unused) {
    clearway_session_t session;
    clearway_snapshot_t *snapshot = clearway_snapshot_new();
    if (!clearway_proc_array_attach(array, &session)) {
        fail();
        return unused;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        long balances[ACCOUNTS];
        clearway_mutex_lock(&transfer_lock);
        clearway_proc_array_snapshot(array, session, snapshot);
        read_balances(snapshot, balances);
        clearway_xid_t xid = clearway_proc_array_assign_xid(array, session);
        add_version(&accounts[0], xid, balances[0] - 1);
        add_version(&accounts[1], xid, balances[1] + 1);
        clearway_status_t end = round % 4 == 3 ? CLEARWAY_ABORTED : CLEARWAY_COMMITTED;
        /* The status first: a transaction that does not run and has none was cut off. */
        if (clearway_commit_log_set(status_log, xid, end, 0) != 0 || !clearway_proc_array_is_running(array, xid))
            fail();
        clearway_proc_array_end(array, session, xid);
        clearway_mutex_unlock(&transfer_lock);
    }
    clearway_proc_array_detach(array, session);
    clearway_snapshot_free(snapshot);
    return unused;
}

static void *add_up(void *unused) {
    clearway_session_t session;
    clearway_snapshot_t *snapshot = clearway_snapshot_new();
    if (!clearway_proc_array_attach(array, &session)) {
        fail();
        return unused;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        long once[ACCOUNTS], again[ACCOUNTS];
        clearway_proc_array_snapshot(array, session, snapshot);
        read_balances(snapshot, once);
        read_balances(snapshot, again);
        clearway_proc_array_clear_xmin(array, session);
        if (once[0] + once[1] != TOTAL || memcmp(once, again, sizeof once) != 0)
            __atomic_fetch_add(&wrong_sums, 1, __ATOMIC_RELAXED);
    }
    clearway_proc_array_detach(array, session);
    clearway_snapshot_free(snapshot);
    return unused;
}

int main(void) {
    latch = clearway_read_biased_init(latch_memory, clearway_class_new("accounts", 0, 0));
    array = clearway_proc_array_new(WRITERS + READERS, CLEARWAY_XID_FIRST);
    status_log = clearway_commit_log_new(device);
    /* The status of a number without a place is not set. */
    clearway_status_t status = CLEARWAY_IN_PROGRESS;
    if (clearway_commit_log_set(status_log, CLEARWAY_XID_LIMIT + 2, CLEARWAY_COMMITTED, 0) != EINVAL ||
        clearway_commit_log_get(status_log, CLEARWAY_XID_LIMIT, &status) != EINVAL ||
        clearway_proc_array_new(1, CLEARWAY_XID_LIMIT) != NULL)
        fail();
    /* Transaction 1 counts as committed. */
    add_version(&accounts[0], 1, TOTAL);
    add_version(&accounts[1], 1, 0);

    pthread_t threads[WRITERS + READERS];
    for (unsigned at = 0; at < WRITERS + READERS; at++) {
        if (pthread_create(&threads[at], NULL, at < WRITERS ? transfer : add_up, NULL)) {
            perror("pthread_create");
            return 1;
        }
    }
    for (unsigned at = 0; at < WRITERS + READERS; at++)
        pthread_join(threads[at], NULL);

    clearway_xid_t next = clearway_proc_array_next_xid(array);
    long moved = WRITERS * ROUNDS / 4 * 3;
    clearway_session_t session;
    clearway_snapshot_t *snapshot = clearway_snapshot_new();
    long balances[ACCOUNTS];
    bool attached = clearway_proc_array_attach(array, &session);
    clearway_proc_array_snapshot(array, session, snapshot);
    read_balances(snapshot, balances);
    clearway_proc_array_clear_xmin(array, session);
    /* Nothing runs, and no snapshot is in use. */
    bool all_ended = clearway_proc_array_horizon(array) == next;
    /* What was flushed, another log over the same pages finds. */
    int flushed = clearway_commit_log_flush(status_log);
    clearway_commit_log_free(status_log);
    status_log = clearway_commit_log_new(device);
    unsigned long committed = 0;
    for (clearway_xid_t xid = CLEARWAY_XID_FIRST; xid < next; xid++) {
        if (clearway_commit_log_get(status_log, xid, &status) != 0 || status == CLEARWAY_IN_PROGRESS)
            fail();
        committed += status == CLEARWAY_COMMITTED;
    }
    /* A page that the device does not have room for is an error of its own, and not of the process. */
    int refused = clearway_commit_log_get(status_log, (clearway_xid_t)1 << 30, &status);
    clearway_snapshot_free(snapshot);
    clearway_commit_log_free(status_log);
    clearway_proc_array_free(array);
    printf("%lu of %d transfers committed, %lu wrong sums, %lu failures\n", committed, WRITERS * ROUNDS, wrong_sums,
           failures);
    return wrong_sums == 0 && failures == 0 && attached && all_ended && flushed == 0 && refused == ENOSPC &&
                   next == CLEARWAY_XID_FIRST + WRITERS * ROUNDS && committed == (unsigned long)moved &&
                   balances[0] == TOTAL - moved && balances[1] == moved
               ? 0
               : 1;
}
