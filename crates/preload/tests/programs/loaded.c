/* A library whose constructor waits for a thread that takes a lock of libc's: the constructor runs under the loader's lock. */
#include "said.h"

static pthread_mutex_t mutex;
static pthread_cond_t cond;

static void *locks(void *argument)
{
    struct timespec soon = after(CLOCK_REALTIME, 1);
    DO(pthread_mutex_lock(&mutex));
    while (pthread_cond_timedwait(&cond, &mutex, &soon) == 0)
        continue;
    DO(pthread_cond_signal(&cond));
    DO(pthread_mutex_unlock(&mutex));
    return argument;
}

__attribute__((constructor)) static void is_loaded(void)
{
    pthread_mutexattr_t of_mutex;
    pthread_condattr_t of_cond;
    pthread_t thread;
    DO(pthread_mutexattr_init(&of_mutex));
    DO(pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED));
    DO(pthread_mutex_init(&mutex, &of_mutex));
    DO(pthread_condattr_init(&of_cond));
    DO(pthread_condattr_setpshared(&of_cond, PTHREAD_PROCESS_SHARED));
    DO(pthread_cond_init(&cond, &of_cond));
    DO(pthread_create(&thread, NULL, locks, NULL));
    DO(pthread_join(thread, NULL));
    puts("the constructor is through");
}
