/* So many acquisitions of each latch in each function; a thread that waits for 50 ms. */
#include "said.h"

#include <signal.h>
#include <sys/wait.h>

pthread_mutex_t quiet_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t waited_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t counted_rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
pthread_mutex_t left_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t left;
static int waiter;

__attribute__((noinline)) void quiet(void)
{
    for (int i = 0; i < 1000; i++) {
        DO(pthread_mutex_lock(&quiet_mutex));
        DO(pthread_mutex_unlock(&quiet_mutex));
    }
}

/* Attempts in vain are no acquisitions. */
__attribute__((noinline)) void tries(void)
{
    for (int i = 0; i < 9; i++) {
        DO(pthread_mutex_trylock(&quiet_mutex));
        MUST(pthread_mutex_trylock(&quiet_mutex) == EBUSY);
        DO(pthread_mutex_unlock(&quiet_mutex));
    }
}

__attribute__((noinline)) void *waits(void *argument)
{
    __atomic_store_n(&waiter, gettid(), __ATOMIC_SEQ_CST);
    DO(pthread_mutex_lock(&waited_mutex));
    DO(pthread_mutex_unlock(&waited_mutex));
    return argument;
}

__attribute__((noinline)) void holds(void)
{
    pthread_t thread;
    struct timespec pause = {0, 50000000};
    DO(pthread_mutex_lock(&waited_mutex));
    DO(pthread_create(&thread, NULL, waits, NULL));
    while (!__atomic_load_n(&waiter, __ATOMIC_SEQ_CST))
        sched_yield();
    while (!is_asleep("/proc/self/task", waiter))
        sched_yield();
    nanosleep(&pause, NULL);
    DO(pthread_mutex_unlock(&waited_mutex));
    DO(pthread_join(thread, NULL));
}

__attribute__((noinline)) void reads(void)
{
    for (int i = 0; i < 7; i++) {
        DO(pthread_rwlock_rdlock(&counted_rwlock));
        DO(pthread_rwlock_unlock(&counted_rwlock));
    }
}

__attribute__((noinline)) void writes(void)
{
    for (int i = 0; i < 7; i++) {
        DO(pthread_rwlock_wrlock(&counted_rwlock));
        DO(pthread_rwlock_unlock(&counted_rwlock));
    }
}

/* The wait acquires the mutex once, and the mutex is not held meanwhile. */
__attribute__((noinline)) void waits_for_condition(void)
{
    struct timespec soon = after(CLOCK_REALTIME, 1000);
    while (pthread_cond_timedwait(&condition, &waited_mutex, &soon) == 0)
        continue;
}

__attribute__((noinline)) void begins_to_wait(void)
{
    DO(pthread_mutex_lock(&waited_mutex));
    waits_for_condition();
    DO(pthread_mutex_unlock(&waited_mutex));
}

__attribute__((noinline)) void in_child(void)
{
    struct timespec pause = {0, 20000000};
    for (int i = 0; i < 5; i++) {
        DO(pthread_mutex_lock(&quiet_mutex));
        DO(pthread_mutex_unlock(&quiet_mutex));
    }
    DO(pthread_mutex_init(&left_mutex, NULL));
    DO(pthread_mutex_lock(&left_mutex));
    nanosleep(&pause, NULL);
    DO(pthread_mutex_unlock(&left_mutex));
}

static void *leaves_locked(void *argument)
{
    DO(pthread_mutex_lock(&left_mutex));
    pthread_barrier_wait(&left);
    pthread_barrier_wait(&left);
    DO(pthread_mutex_unlock(&left_mutex));
    return argument;
}

/* Another thread holds a lock at the fork, which the child makes anew. */
static void forks(void)
{
    pthread_t thread;
    int status;
    DO(pthread_barrier_init(&left, NULL, 2));
    DO(pthread_create(&thread, NULL, leaves_locked, NULL));
    pthread_barrier_wait(&left);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        in_child();
        exit(0);
    }
    MUST(waitpid(child, &status, 0) == child && status == 0);
    pthread_barrier_wait(&left);
    DO(pthread_join(thread, NULL));
}

int main(void)
{
    quiet();
    DO(raise(SIGUSR2) != 0);
    tries();
    holds();
    reads();
    writes();
    begins_to_wait();
    forks();
    /* The table is written by no cancellation point. */
    DO(pthread_cancel(pthread_self()));
    return 0;
}
