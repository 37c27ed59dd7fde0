/* A page under a latch with three modes: readers read while an updater looks, and it alone writes. */
#include <pthread.h>
#include <stdio.h>

#include "clearway.h"

enum { THREADS = 4, ROUNDS = 20000 };

static clearway_sux_t latch = CLEARWAY_SUX_INIT;
static unsigned long left, right, torn, kept;

static void *work(void *number) {
    unsigned which = *(unsigned *)number;
    for (unsigned round = 0; round < ROUNDS; round++) {
        if ((round + which) % 4 != 0) {
            clearway_sux_lock_shared(&latch);
            int is_torn = left != right;
            clearway_sux_unlock_shared(&latch);
            if (is_torn)
                __atomic_fetch_add(&torn, 1, __ATOMIC_RELAXED);
            continue;
        }
        clearway_sux_lock_update(&latch);
        unsigned long seen = left;
        clearway_sux_update_to_exclusive(&latch);
        /* None wrote between the two. */
        kept += left == seen;
        left++;
        right++;
        clearway_sux_exclusive_to_update(&latch);
        clearway_sux_update_to_shared(&latch);
        clearway_sux_unlock_shared(&latch);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    unsigned numbers[THREADS];
    for (unsigned at = 0; at < THREADS; at++) {
        numbers[at] = at;
        if (pthread_create(&threads[at], NULL, work, &numbers[at])) {
            perror("pthread_create");
            return 1;
        }
    }
    for (unsigned at = 0; at < THREADS; at++)
        pthread_join(threads[at], NULL);
    /* One updater excludes another, and a writer excludes readers. */
    clearway_sux_lock_update(&latch);
    int beside = clearway_sux_try_lock_shared(&latch);
    int second = clearway_sux_try_lock_update(&latch);
    int up = clearway_sux_try_update_to_exclusive(&latch);
    clearway_sux_unlock_shared(&latch);
    int alone = clearway_sux_try_update_to_exclusive_for(&latch, 1000000);
    int entered = clearway_sux_try_lock_shared_for(&latch, 1000);
    clearway_sux_unlock_exclusive(&latch);
    unsigned long wanted = (unsigned long)THREADS * ROUNDS / 4;
    printf("%lu writes of %lu, %lu torn reads\n", left, wanted, torn);
    return left == wanted && right == wanted && kept == wanted && torn == 0 && beside && !second && !up && alone &&
                   !entered
               ? 0
               : 1;
}
