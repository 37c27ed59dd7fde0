/* A bounded queue between threads: a mutex, and a condition for each side. */
#include <pthread.h>
#include <stdio.h>

#include "clearway.h"

enum { PRODUCERS = 3, CONSUMERS = 3, EACH = 20000, ROOM = 8 };

static clearway_mutex_t mutex = CLEARWAY_MUTEX_INIT;
static clearway_condition_t has_items = CLEARWAY_CONDITION_INIT;
static clearway_condition_t has_room = CLEARWAY_CONDITION_INIT;
static unsigned items[ROOM];
static unsigned count, taken;
static unsigned long long sum;

static void *produce(void *first) {
    unsigned from = *(unsigned *)first;
    for (unsigned item = from; item < from + EACH; item++) {
        clearway_mutex_lock(&mutex);
        while (count == ROOM)
            clearway_condition_wait(&has_room, &mutex);
        items[count++] = item;
        clearway_mutex_unlock(&mutex);
        clearway_condition_notify_one(&has_items);
    }
    return NULL;
}

static void *consume(void *unused) {
    (void)unused;
    for (;;) {
        clearway_mutex_lock(&mutex);
        while (count == 0 && taken < PRODUCERS * EACH)
            clearway_condition_wait(&has_items, &mutex);
        if (count == 0) {
            clearway_mutex_unlock(&mutex);
            clearway_condition_notify_all(&has_items);
            return NULL;
        }
        sum += items[--count];
        taken++;
        clearway_mutex_unlock(&mutex);
        clearway_condition_notify_one(&has_room);
    }
}

int main(void) {
    pthread_t threads[PRODUCERS + CONSUMERS];
    unsigned firsts[PRODUCERS];
    for (unsigned at = 0; at < PRODUCERS + CONSUMERS; at++) {
        int failed;
        if (at < PRODUCERS) {
            firsts[at] = at * EACH;
            failed = pthread_create(&threads[at], NULL, produce, &firsts[at]);
        } else {
            failed = pthread_create(&threads[at], NULL, consume, NULL);
        }
        if (failed) {
            perror("pthread_create");
            return 1;
        }
    }
    for (unsigned at = 0; at < PRODUCERS + CONSUMERS; at++)
        pthread_join(threads[at], NULL);
    unsigned long long all = (unsigned long long)PRODUCERS * EACH;
    /* The mutex is free again; a wait without a notification ends by its time. */
    clearway_mutex_lock(&mutex);
    int in_time = clearway_condition_wait_for(&has_items, &mutex, 1000000);
    int again = clearway_mutex_try_lock(&mutex) || clearway_mutex_try_lock_for(&mutex, 1000);
    clearway_mutex_unlock(&mutex);
    printf("%u items of %llu, sum %llu\n", taken, all, sum);
    return taken == all && sum == all * (all - 1) / 2 && !in_time && !again ? 0 : 1;
}
