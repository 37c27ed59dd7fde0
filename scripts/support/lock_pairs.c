/* Acquisitions and releases a second of one pthread lock: lock_pairs KIND THREADS MILLISECONDS STEPS, with so many steps of work
   while it is held, of which 500 take about a microsecond; below 0, there is no work at all. The seconds of one thread are those of
   its CPU time, which other programs disturb less. Built by scripts/preload. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int kind, ended;
static long steps;
/* Two words that are equal whenever no thread is inside. */
static volatile long inside[2];

static void *pairs(void *count)
{
    long done = 0, others = 0;
    volatile int work = 0;
    while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
        switch (kind) {
        case 'm': pthread_mutex_lock(&mutex); break;
        case 'c': pthread_mutex_lock(&recursive); break;
        case 'r': pthread_rwlock_rdlock(&rwlock); break;
        default: pthread_rwlock_wrlock(&rwlock); break;
        }
        if (steps < 0) {
            /* Nothing but the lock. */
        } else if (kind == 'r') {
            others += inside[0] != inside[1];
        } else {
            inside[0]++;
            others += inside[0] != inside[1] + 1;
            inside[1]++;
        }
        for (long i = 0; i < steps; i++)
            work++;
        switch (kind) {
        case 'm': pthread_mutex_unlock(&mutex); break;
        case 'c': pthread_mutex_unlock(&recursive); break;
        default: pthread_rwlock_unlock(&rwlock); break;
        }
        for (int i = 0; i < 20 && steps >= 0; i++)
            work++;
        done++;
    }
    if (others) {
        printf("%ld times another thread was inside\n", others);
        exit(1);
    }
    *(long *)count = done;
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[256];
    long counts[256], all = 0;
    int workers = count == 5 ? atoi(arguments[2]) : 0;
    if (workers < 1 || workers > 256 || !strchr("mcrw", arguments[1][0])) {
        fprintf(stderr, "usage: lock_pairs m|c|r|w THREADS MILLISECONDS STEPS\n");
        return 2;
    }
    kind = arguments[1][0];
    clockid_t clock = workers == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    long milliseconds = atol(arguments[3]);
    steps = atol(arguments[4]);
    struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000}, began, over;
    clock_gettime(clock, &began);
    for (int i = 0; i < workers; i++)
        if (pthread_create(&threads[i], NULL, pairs, &counts[i]))
            return 1;
    nanosleep(&pause, NULL);
    __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < workers; i++) {
        pthread_join(threads[i], NULL);
        all += counts[i];
    }
    clock_gettime(clock, &over);
    printf("%.0f\n", all / (over.tv_sec - began.tv_sec + (over.tv_nsec - began.tv_nsec) / 1e9));
    return 0;
}
