/* A log that one thread flushes for all, and whose end others wait for: LwLock with a class of one's own. */
#include <pthread.h>
#include <stdio.h>

#include "clearway.h"

enum { THREADS = 4, ROUNDS = 5000 };

static clearway_lwlock_t flushing, positions;
static uint64_t position;
static uint64_t appended, flushed;
static unsigned long flushes;

static void *append(void *unused) {
    (void)unused;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t mine = __atomic_add_fetch(&appended, 1, __ATOMIC_ACQ_REL);
        while (__atomic_load_n(&flushed, __ATOMIC_ACQUIRE) < mine) {
            if (!clearway_lwlock_acquire_or_wait(&flushing))
                continue;
            uint64_t end = __atomic_load_n(&appended, __ATOMIC_ACQUIRE);
            __atomic_store_n(&flushed, end, __ATOMIC_RELEASE);
            flushes++;
            clearway_lwlock_release(&flushing, CLEARWAY_EXCLUSIVE);
        }
    }
    return NULL;
}

static void *follow(void *unused) {
    (void)unused;
    uint64_t seen = 0;
    while (clearway_lwlock_wait_for_var(&positions, &position, seen, &seen) && seen < 1000)
        ;
    return NULL;
}

int main(void) {
    const clearway_class_t *class = clearway_class_new("Log", 0, 0);
    if (!class || clearway_class_new(NULL, 0, 0) || clearway_class_new("\xff", 0, 0))
        return 2;
    clearway_lwlock_init(&flushing, class, CLEARWAY_LWLOCK_SINGLE_CAS);
    clearway_lwlock_init(&positions, class, CLEARWAY_LWLOCK_WRITER_CLAIMS);
    clearway_lwlock_acquire(&positions, CLEARWAY_EXCLUSIVE);
    pthread_t threads[THREADS], follower;
    if (pthread_create(&follower, NULL, follow, NULL)) {
        perror("pthread_create");
        return 1;
    }
    for (unsigned at = 0; at < THREADS; at++) {
        if (pthread_create(&threads[at], NULL, append, NULL)) {
            perror("pthread_create");
            return 1;
        }
    }
    for (uint64_t at = 1; at <= 1000; at++)
        clearway_lwlock_update_var(&positions, &position, at);
    for (unsigned at = 0; at < THREADS; at++)
        pthread_join(threads[at], NULL);
    int shared = clearway_lwlock_try_acquire(&positions, CLEARWAY_SHARED);
    clearway_lwlock_release(&positions, CLEARWAY_EXCLUSIVE);
    pthread_join(follower, NULL);
    clearway_class_statistics_t counts;
    clearway_class_statistics(class, &counts);
    unsigned long all = (unsigned long)THREADS * ROUNDS;
    printf("%lu records by %lu flushes, %llu conflicts\n", all, flushes,
           (unsigned long long)counts.until_free.conflicts);
    return flushed == all && appended == all && flushes <= all && !shared ? 0 : 1;
}
