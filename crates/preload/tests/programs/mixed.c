/* A condition variable that processes share, with a mutex that they do not share: it may be waited for, as under glibc. */
#include "said.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond;
static int turn;

static void *waits(void *number)
{
    int me = (int)(intptr_t)number;
    for (int i = 0; i < 20; i++) {
        DO(pthread_mutex_lock(&mutex));
        while (turn % 2 != me)
            DO(pthread_cond_wait(&cond, &mutex));
        turn++;
        DO(pthread_cond_broadcast(&cond));
        DO(pthread_mutex_unlock(&mutex));
    }
    return NULL;
}

/* A mutex that knows its holder. */
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static int waits_since;

static void unlocks(void *argument)
{
    (void)argument;
    DO(pthread_mutex_unlock(&checked));
}

/* Waits until it is cancelled: again and again, or in a wait after which it would wait no more. */
static void *is_cancelled(void *once)
{
    DO(pthread_mutex_lock(&checked));
    pthread_cleanup_push(unlocks, NULL);
    waits_since = 1;
    do
        pthread_cond_wait(&cond, &checked);
    while (!once);
    pthread_cleanup_pop(1);
    return once;
}

/* Cancels a thread once it pauses, or before it has run. */
static void cancels(int pauses)
{
    pthread_t thread;
    void *result;
    waits_since = 0;
    DO(pthread_create(&thread, NULL, is_cancelled, NULL));
    while (pauses) {
        DO(pthread_mutex_lock(&checked));
        pauses = !waits_since;
        DO(pthread_mutex_unlock(&checked));
    }
    DO(pthread_cancel(thread));
    DO(pthread_join(thread, &result));
    MUST(result == PTHREAD_CANCELED);
    DO(pthread_mutex_lock(&checked));
    DO(pthread_mutex_unlock(&checked));
}

/* Cancels a thread in its only wait. It has given the mutex up for the pause, and gets it again after the cancellation; if the
   pause was over before that, the thread has ended, and another one is tried. */
static void cancels_a_last_wait(void)
{
    void *result = NULL;
    for (int tries = 0; result != PTHREAD_CANCELED; tries++) {
        pthread_t thread;
        MUST(tries < 1000);
        waits_since = 0;
        DO(pthread_create(&thread, NULL, is_cancelled, &cond));
        for (int is_waiting = 0; !is_waiting;) {
            DO(pthread_mutex_lock(&checked));
            is_waiting = waits_since;
            if (is_waiting)
                DO(pthread_cancel(thread));
            DO(pthread_mutex_unlock(&checked));
        }
        DO(pthread_join(thread, &result));
    }
}

int main(void)
{
    pthread_condattr_t attributes;
    pthread_t thread;
    DO(pthread_condattr_init(&attributes));
    DO(pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    DO(pthread_cond_init(&cond, &attributes));
    DO(pthread_create(&thread, NULL, waits, NULL));
    waits((void *)1);
    DO(pthread_join(thread, NULL));
    MUST(turn == 40);

    struct timespec soon = after(CLOCK_REALTIME, 20);
    int timed;
    DO(pthread_mutex_lock(&mutex));
    while ((timed = pthread_cond_timedwait(&cond, &mutex, &soon)) == 0)
        continue;
    MUST(timed == ETIMEDOUT && is_past(CLOCK_REALTIME, soon));
    DO(pthread_mutex_unlock(&mutex));

    for (int i = 0; i < 20; i++)
        cancels(i % 2);
    cancels_a_last_wait();
    puts("all turns are taken");
    return 0;
}
