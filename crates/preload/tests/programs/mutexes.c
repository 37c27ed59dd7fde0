/* Every function of mutexes, of every type, and every error. */
#include "said.h"

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t zero;

static void *trylock(void *mutex)
{
    return (void *)(intptr_t)pthread_mutex_trylock(mutex);
}

static void *unlock(void *mutex)
{
    return (void *)(intptr_t)pthread_mutex_unlock(mutex);
}

static void *timedlock(void *mutex)
{
    struct timespec at = after(CLOCK_REALTIME, 20);
    errno = 77;
    int result = pthread_mutex_timedlock(mutex, &at);
    MUST(errno == 77);
    MUST(result != ETIMEDOUT || is_past(CLOCK_REALTIME, at));
    return (void *)(intptr_t)result;
}

static void *clocklock(void *mutex)
{
    struct timespec at = after(CLOCK_MONOTONIC, 20);
    errno = 77;
    int result = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &at);
    MUST(errno == 77);
    MUST(result != ETIMEDOUT || is_past(CLOCK_MONOTONIC, at));
    return (void *)(intptr_t)result;
}

static void *locks_past_time(void *mutex)
{
    struct timespec at = {-1, 0};
    return (void *)(intptr_t)pthread_mutex_timedlock(mutex, &at);
}

static void *locks_by_no_time(void *mutex)
{
    struct timespec at = {0, 1000000000};
    return (void *)(intptr_t)pthread_mutex_timedlock(mutex, &at);
}

static void *locks_and_ends(void *mutex)
{
    return (void *)(intptr_t)pthread_mutex_lock(mutex);
}

static void again_and_again(pthread_mutex_t *mutex)
{
    struct timespec at = after(CLOCK_REALTIME, 20);
    SAY(pthread_mutex_trylock(mutex));
    SAY(pthread_mutex_lock(mutex));
    SAY(pthread_mutex_timedlock(mutex, &at));
    SAY(pthread_mutex_trylock(mutex));
    SAY(elsewhere(unlock, mutex));
    for (int i = 0; i < 5; i++)
        SAY(pthread_mutex_unlock(mutex));
}

static void with_a_time(pthread_mutex_t *mutex)
{
    struct timespec later = after(CLOCK_REALTIME, 10000), monotonic = after(CLOCK_MONOTONIC, 10000), none = {0, -1};
    SAY(pthread_mutex_timedlock(mutex, &later));
    SAY(pthread_mutex_unlock(mutex));
    SAY(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &monotonic));
    SAY(pthread_mutex_unlock(mutex));
    SAY(pthread_mutex_clocklock(mutex, CLOCK_REALTIME, &later));
    SAY(pthread_mutex_unlock(mutex));
    SAY(pthread_mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &later));
    /* What is free needs no time. */
    SAY(pthread_mutex_timedlock(mutex, &none));
    SAY(pthread_mutex_unlock(mutex));
}

static void initialised(int type, int shared, int robust, int protocol)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    /* What was at the address before does not matter. */
    memset(&mutex, 0x5a, sizeof mutex);
    DO(pthread_mutexattr_init(&attributes));
    DO(pthread_mutexattr_settype(&attributes, type));
    DO(pthread_mutexattr_setpshared(&attributes, shared));
    DO(pthread_mutexattr_setrobust(&attributes, robust));
    DO(pthread_mutexattr_setprotocol(&attributes, protocol));
    printf("type %d, shared %d, robust %d, protocol %d\n", type, shared, robust, protocol);
    SAY(pthread_mutex_init(&mutex, &attributes));
    SAY(pthread_mutex_lock(&mutex));
    SAY(elsewhere(trylock, &mutex));
    SAY(elsewhere(timedlock, &mutex));
    SAY(pthread_mutex_unlock(&mutex));
    if (type != PTHREAD_MUTEX_NORMAL)
        again_and_again(&mutex);
    if (robust) {
        SAY(elsewhere(locks_and_ends, &mutex));
        SAY(pthread_mutex_lock(&mutex));
        SAY(pthread_mutex_consistent(&mutex));
        SAY(pthread_mutex_unlock(&mutex));
        SAY(pthread_mutex_lock(&mutex));
        SAY(pthread_mutex_unlock(&mutex));
    } else {
        SAY(pthread_mutex_consistent(&mutex));
    }
    SAY(pthread_mutex_destroy(&mutex));
    SAY(pthread_mutex_lock(&mutex));
    SAY(pthread_mutex_trylock(&mutex));
    SAY(pthread_mutex_unlock(&mutex));
    SAY(pthread_mutex_init(&mutex, NULL));
    SAY(pthread_mutex_lock(&mutex));
    /* Held, and made anew: an engine that frees its memory and gets it again. */
    SAY(pthread_mutex_init(&mutex, NULL));
    SAY(pthread_mutex_lock(&mutex));
    memset(&mutex, 0, sizeof mutex);
    SAY(pthread_mutex_lock(&mutex));
    SAY(pthread_mutex_unlock(&mutex));
    pthread_mutex_t copy = mutex;
    SAY(pthread_mutex_lock(&copy));
    SAY(pthread_mutex_trylock(&mutex));
    SAY(pthread_mutex_unlock(&mutex));
    SAY(pthread_mutex_unlock(&copy));
    /* Not held: glibc leaves it as it is. */
    SAY(pthread_mutex_lock(&mutex));
    SAY(pthread_mutex_unlock(&mutex));
    SAY(pthread_mutex_destroy(&mutex));
    DO(pthread_mutexattr_destroy(&attributes));
}

int main(void)
{
    pthread_mutex_t *statics[] = {&plain, &recursive, &checked, &adaptive, &zero};
    for (int i = 0; i < 5; i++) {
        printf("static initialiser %d\n", i);
        pthread_mutex_t *mutex = statics[i];
        SAY(pthread_mutex_lock(mutex));
        SAY(elsewhere(trylock, mutex));
        SAY(elsewhere(timedlock, mutex));
        SAY(elsewhere(clocklock, mutex));
        SAY(elsewhere(locks_past_time, mutex));
        SAY(elsewhere(locks_by_no_time, mutex));
        SAY(pthread_mutex_destroy(mutex));
        SAY(pthread_mutex_unlock(mutex));
        with_a_time(mutex);
    }
    again_and_again(&recursive);
    again_and_again(&checked);
    int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
    for (int i = 0; i < 3; i++) {
        initialised(types[i], PTHREAD_PROCESS_PRIVATE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
        initialised(types[i], PTHREAD_PROCESS_SHARED, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
        initialised(types[i], PTHREAD_PROCESS_PRIVATE, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
        initialised(types[i], PTHREAD_PROCESS_PRIVATE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
    }
    return 0;
}
