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

static void unlocks(void *argument)
{
    (void)argument;
    DO(pthread_mutex_unlock(&mutex));
}

static void *is_cancelled(void *argument)
{
    DO(pthread_mutex_lock(&mutex));
    pthread_cleanup_push(unlocks, NULL);
    for (;;)
        pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(1);
    return argument;
}

int main(void)
{
    pthread_condattr_t attributes;
    pthread_t thread;
    void *result;
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

    DO(pthread_create(&thread, NULL, is_cancelled, NULL));
    DO(pthread_cancel(thread));
    DO(pthread_join(thread, &result));
    MUST(result == PTHREAD_CANCELED);
    DO(pthread_mutex_lock(&mutex));
    puts("all turns are taken");
    return 0;
}
