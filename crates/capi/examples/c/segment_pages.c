/* Pages in memory that processes share, each under a latch with three modes, and a counter under a mutex: children that read
   and change them, and one that is killed while it waits to become the only holder. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "children.h"
#include "clearway.h"

enum { WORKERS = 8, CHILDREN = 3, ROUNDS = 5000 };

/* What lies in the segment. */
struct page {
    clearway_segment_rwlock_t latch;
    unsigned long long first, second; /* the same, for who holds the latch */
    clearway_segment_mutex_t counter_mutex;
    unsigned long long changes;
};

static clearway_segment_t *segment;
static struct page *page;

static void done(clearway_segment_result_t result, const char *what) {
    expect(result, CLEARWAY_SEGMENT_OK, what);
}

static clearway_segment_worker_t *work(void) {
    clearway_segment_worker_t *worker;
    done(clearway_segment_register(segment, &worker), "register");
    return worker;
}

static void check(void) {
    if (page->first != page->second) {
        fprintf(stderr, "a reader sees half of a change\n");
        exit(1);
    }
}

/* Looks for what is to be changed beside readers, and changes it alone. */
static void change(clearway_segment_worker_t *worker) {
    bool changed;
    done(clearway_segment_rwlock_acquire(worker, &page->latch, CLEARWAY_SEGMENT_UPDATE), "update");
    check();
    done(clearway_segment_rwlock_change(worker, &page->latch, CLEARWAY_SEGMENT_UPDATE, CLEARWAY_SEGMENT_EXCLUSIVE, &changed),
         "update to exclusive");
    page->first++;
    page->second++;
    done(clearway_segment_rwlock_release(worker, &page->latch, CLEARWAY_SEGMENT_EXCLUSIVE), "release");
    done(clearway_segment_mutex_lock(worker, &page->counter_mutex), "lock");
    page->changes++;
    done(clearway_segment_mutex_unlock(worker, &page->counter_mutex), "unlock");
}

/* A child that reads and changes so often, and leaves. */
static pid_t changing(unsigned rounds) {
    pid_t child = fork();
    if (child != 0)
        return child;
    clearway_segment_worker_t *worker = work();
    for (unsigned round = 0; round < rounds; round++) {
        done(clearway_segment_rwlock_acquire(worker, &page->latch, CLEARWAY_SEGMENT_SHARED), "read");
        check();
        done(clearway_segment_rwlock_release(worker, &page->latch, CLEARWAY_SEGMENT_SHARED), "release");
        change(worker);
    }
    done(clearway_segment_leave(worker), "leave");
    _exit(0);
}

/* A child that waits to be the only holder: it excludes new readers until those inside have left. */
static pid_t writing(void) {
    pid_t child = fork();
    if (child != 0)
        return child;
    clearway_segment_worker_t *worker = work();
    done(clearway_segment_rwlock_acquire(worker, &page->latch, CLEARWAY_SEGMENT_EXCLUSIVE), "write");
    _exit(1);
}

int main(void) {
    size_t size = clearway_segment_size(WORKERS, 4096);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t offset;
    if (memory == MAP_FAILED)
        return 1;
    done(clearway_segment_create(memory, size, WORKERS, &segment), "create");
    done(clearway_segment_reserve(segment, sizeof *page, 128, &offset), "reserve");
    page = clearway_segment_address(segment, offset, sizeof *page);
    clearway_segment_set_class(1, clearway_class_new("Pages", 0, 0));
    clearway_segment_rwlock_init(&page->latch, 1);
    clearway_segment_mutex_init(&page->counter_mutex, 1);

    pid_t children[CHILDREN];
    for (unsigned at = 0; at < CHILDREN; at++)
        children[at] = changing(ROUNDS);
    for (unsigned at = 0; at < CHILDREN; at++)
        wait_for(children[at], 0);
    if (page->changes != CHILDREN * ROUNDS || page->first != CHILDREN * ROUNDS)
        return 1;

    /* A process that dies while it waits for a reader keeps out no one. */
    bool taken;
    clearway_segment_report_t report;
    clearway_segment_worker_t *worker = work();
    done(clearway_segment_rwlock_acquire(worker, &page->latch, CLEARWAY_SEGMENT_SHARED), "read");
    pid_t waiting = writing();
    await_state(waiting, 'S', 50);
    pid_t next = changing(1);
    await_state(next, 'S', 50);
    kill(waiting, SIGKILL);
    wait_for(waiting, 1);
    done(clearway_segment_recover_dead(segment, &report), "recover");
    if (report.asleep != 1 || report.holders != 0)
        return 1;
    done(clearway_segment_rwlock_release(worker, &page->latch, CLEARWAY_SEGMENT_SHARED), "release");
    wait_for(next, 0);

    /* What is not held is neither changed nor released; what is held by another is not taken in vain. */
    expect(clearway_segment_rwlock_change(worker, &page->latch, CLEARWAY_SEGMENT_UPDATE, CLEARWAY_SEGMENT_SHARED, &taken),
           CLEARWAY_SEGMENT_NOT_HELD, "change");
    expect(clearway_segment_mutex_unlock(worker, &page->counter_mutex), CLEARWAY_SEGMENT_NOT_HELD, "unlock");
    done(clearway_segment_mutex_try_lock_for(worker, &page->counter_mutex, 0, &taken), "try");
    if (!taken || page->changes != CHILDREN * ROUNDS + 1 || page->first != CHILDREN * ROUNDS + 1)
        return 1;
    done(clearway_segment_mutex_unlock(worker, &page->counter_mutex), "unlock");
    done(clearway_segment_rwlock_try_acquire_for(worker, &page->latch, CLEARWAY_SEGMENT_EXCLUSIVE, 1000, &taken), "try");
    if (!taken)
        return 1;
    done(clearway_segment_rwlock_release(worker, &page->latch, CLEARWAY_SEGMENT_EXCLUSIVE), "release");
    done(clearway_segment_leave(worker), "leave");
    clearway_segment_detach(segment);
    munmap(memory, size);
    printf("%d changes, and one more after a death\n", CHILDREN * ROUNDS);
    return 0;
}
