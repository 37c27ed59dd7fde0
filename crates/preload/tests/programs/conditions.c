/* Every function of condition variables, with mutexes of every type, and every error; cancellation. */
#include "said.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int ready, waiting, cleaned;

static void errors(pthread_cond_t *cond, clockid_t clock, pthread_mutex_t *mutex)
{
    struct timespec none = {0, -1}, past = {0, 0}, soon;
    DO(pthread_mutex_lock(mutex));
    SAY(pthread_cond_timedwait(cond, mutex, &none));
    SAY(pthread_cond_timedwait(cond, mutex, &past));
    soon = after(clock, 20);
    int result;
    errno = 77;
    /* May end early. */
    while ((result = pthread_cond_timedwait(cond, mutex, &soon)) == 0)
        continue;
    MUST(errno == 77);
    SAY(result);
    MUST(is_past(clock, soon));
    soon = after(CLOCK_MONOTONIC, 20);
    while ((result = pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &soon)) == 0)
        continue;
    SAY(result);
    MUST(is_past(CLOCK_MONOTONIC, soon));
    soon = after(CLOCK_REALTIME, 20);
    while ((result = pthread_cond_clockwait(cond, mutex, CLOCK_REALTIME, &soon)) == 0)
        continue;
    SAY(result);
    SAY(pthread_cond_clockwait(cond, mutex, CLOCK_PROCESS_CPUTIME_ID, &soon));
    SAY(pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &none));
    DO(pthread_mutex_unlock(mutex));
    SAY(pthread_cond_signal(cond));
    SAY(pthread_cond_broadcast(cond));
}

struct pair {
    pthread_mutex_t *mutex;
    pthread_cond_t *cond;
};

static void *waits(void *argument)
{
    struct pair *pair = argument;
    DO(pthread_mutex_lock(pair->mutex));
    waiting++;
    while (!ready)
        DO(pthread_cond_wait(pair->cond, pair->mutex));
    waiting--;
    DO(pthread_mutex_unlock(pair->mutex));
    return NULL;
}

/* Threads that wait are woken by one broadcast, or one by one. */
static void wakes(pthread_mutex_t *mutex, pthread_cond_t *cond, int all)
{
    enum { THREADS = 5 };
    pthread_t threads[THREADS];
    struct pair pair = {mutex, cond};
    ready = waiting = 0;
    for (int i = 0; i < THREADS; i++)
        DO(pthread_create(&threads[i], NULL, waits, &pair));
    for (int all_wait = 0; !all_wait;) {
        DO(pthread_mutex_lock(mutex));
        all_wait = waiting == THREADS;
        DO(pthread_mutex_unlock(mutex));
        sched_yield();
    }
    DO(pthread_mutex_lock(mutex));
    ready = 1;
    DO(pthread_mutex_unlock(mutex));
    if (all)
        SAY(pthread_cond_broadcast(cond));
    else
        for (int i = 0; i < THREADS; i++)
            DO(pthread_cond_signal(cond));
    for (int i = 0; i < THREADS; i++)
        DO(pthread_join(threads[i], NULL));
    MUST(waiting == 0);
}

static void cleanup(void *argument)
{
    (void)argument;
    cleaned++;
    /* The mutex is held again. */
    MUST(pthread_mutex_trylock(&mutex) == EBUSY);
    DO(pthread_mutex_unlock(&mutex));
}

static void *waits_until_cancelled(void *argument)
{
    DO(pthread_mutex_lock(&mutex));
    pthread_cleanup_push(cleanup, NULL);
    waiting = 1;
    for (;;) {
        struct timespec at = after(CLOCK_REALTIME, 3600000);
        if (argument)
            pthread_cond_timedwait(&cond, &mutex, &at);
        else
            pthread_cond_wait(&cond, &mutex);
    }
    pthread_cleanup_pop(1);
    return NULL;
}

static void cancels(void *timed, int asleep)
{
    pthread_t thread;
    void *result;
    struct timespec pause = {0, 20000000};
    waiting = cleaned = 0;
    DO(pthread_create(&thread, NULL, waits_until_cancelled, timed));
    for (int is_waiting = 0; asleep && !is_waiting;) {
        DO(pthread_mutex_lock(&mutex));
        is_waiting = waiting;
        DO(pthread_mutex_unlock(&mutex));
    }
    if (asleep)
        nanosleep(&pause, NULL);
    SAY(pthread_cancel(thread));
    DO(pthread_join(thread, &result));
    SAY(result == PTHREAD_CANCELED ? 0 : EINVAL);
    MUST(cleaned <= 1 && (cleaned == 1 || !asleep));
    SAY(pthread_mutex_trylock(&mutex));
    SAY(pthread_mutex_unlock(&mutex));
}

static void *waits_without_cancellation(void *argument)
{
    int old;
    DO(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old));
    waits(argument);
    return NULL;
}

static void cancels_in_vain(void)
{
    pthread_t thread;
    void *result;
    struct pair pair = {&mutex, &cond};
    ready = waiting = 0;
    DO(pthread_create(&thread, NULL, waits_without_cancellation, &pair));
    for (int is_waiting = 0; !is_waiting;) {
        DO(pthread_mutex_lock(&mutex));
        is_waiting = waiting;
        DO(pthread_mutex_unlock(&mutex));
    }
    SAY(pthread_cancel(thread));
    DO(pthread_mutex_lock(&mutex));
    MUST(waiting == 1);
    ready = 1;
    DO(pthread_mutex_unlock(&mutex));
    DO(pthread_cond_broadcast(&cond));
    DO(pthread_join(thread, &result));
    SAY(result == NULL ? 0 : EINVAL);
}

static void *cancels_itself(void *argument)
{
    int old;
    DO(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old));
    pthread_cancel(pthread_self());
    return argument;
}

int main(void)
{
    errors(&cond, CLOCK_REALTIME, &mutex);
    wakes(&mutex, &cond, 0);
    wakes(&mutex, &cond, 1);
    int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
    for (int i = 0; i < 12; i++) {
        pthread_mutexattr_t of_mutex;
        pthread_condattr_t of_cond;
        pthread_mutex_t mutex;
        pthread_cond_t cond;
        int is_shared = i / 3 == 1, is_robust = i / 3 == 2, is_monotonic = i / 3 == 3;
        memset(&cond, 0x5a, sizeof cond);
        printf("mutex %d, shared %d, robust %d, monotonic %d\n", i % 3, is_shared, is_robust, is_monotonic);
        DO(pthread_mutexattr_init(&of_mutex));
        DO(pthread_condattr_init(&of_cond));
        DO(pthread_mutexattr_settype(&of_mutex, types[i % 3]));
        DO(pthread_mutexattr_setpshared(&of_mutex, is_shared));
        DO(pthread_mutexattr_setrobust(&of_mutex, is_robust));
        DO(pthread_condattr_setpshared(&of_cond, is_shared));
        DO(pthread_condattr_setclock(&of_cond, is_monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME));
        SAY(pthread_mutex_init(&mutex, &of_mutex));
        SAY(pthread_cond_init(&cond, &of_cond));
        errors(&cond, is_monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, &mutex);
        wakes(&mutex, &cond, 0);
        wakes(&mutex, &cond, 1);
        if (i % 3 == 2) {
            SAY(pthread_cond_wait(&cond, &mutex));
        }
        SAY(pthread_cond_destroy(&cond));
        SAY(pthread_mutex_destroy(&mutex));
    }
    for (int i = 0; i < 4; i++)
        cancels(i & 1 ? &cond : NULL, i & 2);
    cancels_in_vain();
    pthread_t thread;
    void *result;
    DO(pthread_create(&thread, NULL, cancels_itself, NULL));
    DO(pthread_join(thread, &result));
    SAY(result == PTHREAD_CANCELED ? 0 : EINVAL);
    return 0;
}
