/* Latches between processes: children that fork, one that is killed while it waits, and one while it holds. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "children.h"
#include "clearway.h"

enum { WORKERS = 16, CHILDREN = 4, ROUNDS = 20000 };

/* What lies in the segment. */
struct accounts {
    clearway_segment_lwlock_t latch;
    unsigned long long from, to;
    uint64_t flushed; /* the latch's variable */
    int told;         /* children that have seen it change */
    int done;         /* times that a worker has done the work of all */
    int inside;       /* a child holds the latch and stays */
};

static clearway_segment_t *segment;
static struct accounts *accounts;

static clearway_segment_worker_t *work(void) {
    clearway_segment_worker_t *worker;
    expect(clearway_segment_register(segment, &worker), CLEARWAY_SEGMENT_OK, "register");
    return worker;
}

static void transfer(clearway_segment_worker_t *worker) {
    expect(clearway_segment_lwlock_acquire(worker, &accounts->latch, CLEARWAY_EXCLUSIVE), CLEARWAY_SEGMENT_OK, "acquire");
    accounts->from--;
    accounts->to++;
    expect(clearway_segment_lwlock_release(worker, &accounts->latch, CLEARWAY_EXCLUSIVE), CLEARWAY_SEGMENT_OK, "release");
}

/* A child that makes so many transfers, and leaves. */
static pid_t transferring(unsigned rounds) {
    pid_t child = fork();
    if (child != 0)
        return child;
    clearway_segment_worker_t *worker = work();
    for (unsigned round = 0; round < rounds; round++)
        transfer(worker);
    expect(clearway_segment_leave(worker), CLEARWAY_SEGMENT_OK, "leave");
    _exit(0);
}

/* A child that waits until 7 is flushed, by a holder that keeps the latch; then until the work of all is done. */
static pid_t waiting_for_others(void) {
    pid_t child = fork();
    if (child != 0)
        return child;
    clearway_segment_worker_t *worker = work();
    uint64_t seen = 0;
    bool changed = true;
    while (seen < 7 && changed)
        expect(clearway_segment_lwlock_wait_for_var(worker, &accounts->latch, &accounts->flushed, seen, &seen, &changed),
               CLEARWAY_SEGMENT_OK, "wait for a variable");
    if (seen != 7)
        _exit(1);
    __atomic_add_fetch(&accounts->told, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&accounts->done, __ATOMIC_ACQUIRE) == 0) {
        bool acquired;
        expect(clearway_segment_lwlock_acquire_or_wait(worker, &accounts->latch, &acquired), CLEARWAY_SEGMENT_OK, "or wait");
        if (acquired) {
            accounts->done += accounts->done == 0;
            expect(clearway_segment_lwlock_release(worker, &accounts->latch, CLEARWAY_EXCLUSIVE), CLEARWAY_SEGMENT_OK, "release");
        }
    }
    expect(clearway_segment_leave(worker), CLEARWAY_SEGMENT_OK, "leave");
    _exit(0);
}

/* A child that takes the latch, and stays. */
static pid_t staying(void) {
    pid_t child = fork();
    if (child != 0)
        return child;
    clearway_segment_worker_t *worker = work();
    expect(clearway_segment_lwlock_acquire(worker, &accounts->latch, CLEARWAY_SHARED), CLEARWAY_SEGMENT_OK, "acquire");
    __atomic_store_n(&accounts->inside, 1, __ATOMIC_RELEASE);
    for (;;)
        pause();
}

int main(void) {
    size_t size = clearway_segment_size(WORKERS, 4096);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t offset;
    if (memory == MAP_FAILED)
        return 1;
    expect(clearway_segment_create(memory, size, WORKERS, &segment), CLEARWAY_SEGMENT_OK, "create");
    expect(clearway_segment_reserve(segment, sizeof *accounts, 128, &offset), CLEARWAY_SEGMENT_OK, "reserve");
    accounts = clearway_segment_address(segment, offset, sizeof *accounts);
    clearway_segment_set_class(1, clearway_class_new("Accounts", 0, 0));
    clearway_segment_lwlock_init(&accounts->latch, 1, CLEARWAY_SEGMENT_BARGING);
    accounts->from = (unsigned long long)CHILDREN * ROUNDS + 1;

    /* Processes exclude each other. */
    pid_t children[CHILDREN];
    for (unsigned at = 0; at < CHILDREN; at++)
        children[at] = transferring(ROUNDS);
    for (unsigned at = 0; at < CHILDREN; at++)
        wait_for(children[at], 0);
    if (accounts->from != 1 || accounts->to != (unsigned long long)CHILDREN * ROUNDS)
        return 1;

    /* A process waits for what the holder says, and the holder keeps the latch. */
    clearway_segment_worker_t *worker = work();
    expect(clearway_segment_lwlock_acquire(worker, &accounts->latch, CLEARWAY_EXCLUSIVE), CLEARWAY_SEGMENT_OK, "acquire");
    for (unsigned at = 0; at < CHILDREN; at++)
        children[at] = waiting_for_others();
    await_state(children[0], 'S', 50);
    for (uint64_t flushed = 3; flushed <= 7; flushed += 4)
        expect(clearway_segment_lwlock_update_var(worker, &accounts->latch, &accounts->flushed, flushed), CLEARWAY_SEGMENT_OK,
               "update");
    while (__atomic_load_n(&accounts->told, __ATOMIC_ACQUIRE) < CHILDREN)
        usleep(100);
    expect(clearway_segment_lwlock_release(worker, &accounts->latch, CLEARWAY_EXCLUSIVE), CLEARWAY_SEGMENT_OK, "release");
    for (unsigned at = 0; at < CHILDREN; at++)
        wait_for(children[at], 0);
    if (accounts->done != 1)
        return 1;
    expect(clearway_segment_lwlock_update_var(worker, &accounts->latch, &accounts->flushed, 8), CLEARWAY_SEGMENT_NOT_HELD, "update");
    if (accounts->flushed != 7)
        return 1;

    /* A process that is killed while it sleeps on the latch takes no wake-up with it. */
    clearway_segment_report_t report;
    expect(clearway_segment_lwlock_acquire(worker, &accounts->latch, CLEARWAY_EXCLUSIVE), CLEARWAY_SEGMENT_OK, "acquire");
    pid_t waiting = transferring(1);
    /* It polls before it sleeps. A sleep between two polls is short: one that lasts is the latch's. */
    await_state(waiting, 'S', 50);
    kill(waiting, SIGSTOP);
    await_state(waiting, 'T', 1);
    pid_t next = transferring(1);
    await_state(next, 'S', 50);
    /* The release wakes the first, which is stopped, and then killed. */
    expect(clearway_segment_lwlock_release(worker, &accounts->latch, CLEARWAY_EXCLUSIVE), CLEARWAY_SEGMENT_OK, "release");
    kill(waiting, SIGKILL);
    wait_for(waiting, 1);
    expect(clearway_segment_recover_dead(segment, &report), CLEARWAY_SEGMENT_OK, "recover");
    if (report.asleep != 1 || report.holders != 0 || clearway_segment_is_broken(segment))
        return 1;
    wait_for(next, 0);
    if (accounts->from != 0)
        return 1;
    expect(clearway_segment_leave(worker), CLEARWAY_SEGMENT_OK, "leave");

    /* A process that is killed while it holds the latch is found: the others have to end. */
    pid_t holding = staying();
    while (!__atomic_load_n(&accounts->inside, __ATOMIC_ACQUIRE))
        usleep(100);
    worker = work();
    kill(holding, SIGKILL);
    wait_for(holding, 1);
    uint32_t pids[WORKERS];
    if (clearway_segment_processes(segment, pids, WORKERS) != 1 || pids[0] != (uint32_t)getpid())
        return 1;
    expect(clearway_segment_recover_dead(segment, &report), CLEARWAY_SEGMENT_OK, "recover");
    if (report.holders != 1 || report.holder_pid != (uint32_t)holding || report.holder_latch != offset)
        return 1;
    clearway_segment_result_t refused = clearway_segment_lwlock_acquire(worker, &accounts->latch, CLEARWAY_SHARED);
    expect(refused, CLEARWAY_SEGMENT_BROKEN, "a broken segment");
    expect(clearway_segment_recover_dead(segment, &report), CLEARWAY_SEGMENT_BROKEN, "recover again");
    if (report.holders != 0 || report.holder_pid != 0 || report.holder_latch != 0)
        return 1;
    expect(clearway_segment_leave(worker), CLEARWAY_SEGMENT_OK, "leave");
    clearway_segment_detach(segment);

    /* All have ended, and it is made anew. */
    expect(clearway_segment_create(memory, size, WORKERS, &segment), CLEARWAY_SEGMENT_OK, "create");
    clearway_segment_detach(segment);
    munmap(memory, size);
    printf("%d transfers, and one more after a death\n", CHILDREN * ROUNDS);
    return 0;
}
