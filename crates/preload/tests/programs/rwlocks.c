/* Every function of reader-writer locks and spinlocks, and every error. */
#include "said.h"

static pthread_rwlock_t plain = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t writers_first = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static void *tryrdlock(void *rwlock)
{
    int result = pthread_rwlock_tryrdlock(rwlock);
    if (result == 0)
        DO(pthread_rwlock_unlock(rwlock));
    return (void *)(intptr_t)result;
}

static void *trywrlock(void *rwlock)
{
    int result = pthread_rwlock_trywrlock(rwlock);
    if (result == 0)
        DO(pthread_rwlock_unlock(rwlock));
    return (void *)(intptr_t)result;
}

#define TIMED(name, clock, call) \
    static void *name(void *rwlock) \
    { \
        struct timespec at = after(clock, 20); \
        errno = 77; \
        int result = call; \
        MUST(errno == 77); \
        MUST(result != ETIMEDOUT || is_past(clock, at)); \
        if (result == 0) \
            DO(pthread_rwlock_unlock(rwlock)); \
        return (void *)(intptr_t)result; \
    }

TIMED(timedrdlock, CLOCK_REALTIME, pthread_rwlock_timedrdlock(rwlock, &at))
TIMED(timedwrlock, CLOCK_REALTIME, pthread_rwlock_timedwrlock(rwlock, &at))
TIMED(clockrdlock, CLOCK_MONOTONIC, pthread_rwlock_clockrdlock(rwlock, CLOCK_MONOTONIC, &at))
TIMED(clockwrlock, CLOCK_MONOTONIC, pthread_rwlock_clockwrlock(rwlock, CLOCK_MONOTONIC, &at))

static void everything_elsewhere(pthread_rwlock_t *rwlock)
{
    SAY(elsewhere(tryrdlock, rwlock));
    SAY(elsewhere(trywrlock, rwlock));
    SAY(elsewhere(timedrdlock, rwlock));
    SAY(elsewhere(timedwrlock, rwlock));
    SAY(elsewhere(clockrdlock, rwlock));
    SAY(elsewhere(clockwrlock, rwlock));
}

static int write_wanted;

static void *writer(void *rwlock)
{
    __atomic_store_n(&write_wanted, 1, __ATOMIC_SEQ_CST);
    DO(pthread_rwlock_wrlock(rwlock));
    DO(pthread_rwlock_unlock(rwlock));
    return NULL;
}

/* A thread that reads may read again though a writer waits for it to leave. */
static void reads_twice(pthread_rwlock_t *rwlock)
{
    pthread_t thread;
    struct timespec pause = {0, 30000000};
    write_wanted = 0;
    SAY(pthread_rwlock_rdlock(rwlock));
    DO(pthread_create(&thread, NULL, writer, rwlock));
    while (!__atomic_load_n(&write_wanted, __ATOMIC_SEQ_CST))
        sched_yield();
    nanosleep(&pause, NULL);
    SAY(pthread_rwlock_rdlock(rwlock));
    SAY(pthread_rwlock_tryrdlock(rwlock));
    SAY(pthread_rwlock_unlock(rwlock));
    SAY(pthread_rwlock_unlock(rwlock));
    SAY(pthread_rwlock_unlock(rwlock));
    DO(pthread_join(thread, NULL));
}

static pthread_rwlock_t *met_under;
static pthread_barrier_t met;

static void *meets(void *timed)
{
    struct timespec later = after(CLOCK_REALTIME, 3600000);
    DO(timed ? pthread_rwlock_timedrdlock(met_under, &later) : pthread_rwlock_rdlock(met_under));
    int result = pthread_barrier_wait(&met);
    MUST(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
    DO(pthread_rwlock_unlock(met_under));
    return NULL;
}

/* Threads that have waited for one writer read together, and may wait for each other, though another writer waits. */
static void readers_meet(pthread_rwlock_t *rwlock)
{
    enum { READERS = 3 };
    pthread_t readers[READERS], another;
    struct timespec pause = {0, 10000000};
    met_under = rwlock;
    DO(pthread_barrier_init(&met, NULL, READERS));
    for (int round = 0; round < 4; round++) {
        DO(pthread_rwlock_wrlock(rwlock));
        for (int i = 0; i < READERS; i++)
            DO(pthread_create(&readers[i], NULL, meets, i == round % 4 ? rwlock : NULL));
        DO(pthread_create(&another, NULL, writer, rwlock));
        nanosleep(&pause, NULL);
        DO(pthread_rwlock_unlock(rwlock));
        for (int i = 0; i < READERS; i++)
            DO(pthread_join(readers[i], NULL));
        DO(pthread_join(another, NULL));
    }
    DO(pthread_barrier_destroy(&met));
}

static void exercise(pthread_rwlock_t *rwlock)
{
    struct timespec later = after(CLOCK_REALTIME, 10000), none = {0, 1000000000}, past = {0, 0};
    everything_elsewhere(rwlock);
    SAY(pthread_rwlock_rdlock(rwlock));
    everything_elsewhere(rwlock);
    SAY(pthread_rwlock_rdlock(rwlock));
    SAY(pthread_rwlock_trywrlock(rwlock));
    SAY(pthread_rwlock_unlock(rwlock));
    SAY(elsewhere(trywrlock, rwlock));
    SAY(pthread_rwlock_unlock(rwlock));
    SAY(pthread_rwlock_wrlock(rwlock));
    everything_elsewhere(rwlock);
    SAY(pthread_rwlock_wrlock(rwlock));
    SAY(pthread_rwlock_rdlock(rwlock));
    SAY(pthread_rwlock_tryrdlock(rwlock));
    SAY(pthread_rwlock_trywrlock(rwlock));
    SAY(pthread_rwlock_timedrdlock(rwlock, &later));
    SAY(pthread_rwlock_timedwrlock(rwlock, &later));
    SAY(pthread_rwlock_unlock(rwlock));
    SAY(pthread_rwlock_timedrdlock(rwlock, &later));
    SAY(pthread_rwlock_timedrdlock(rwlock, &past));
    SAY(pthread_rwlock_timedwrlock(rwlock, &past));
    SAY(pthread_rwlock_unlock(rwlock));
    SAY(pthread_rwlock_unlock(rwlock));
    SAY(pthread_rwlock_timedwrlock(rwlock, &later));
    SAY(pthread_rwlock_unlock(rwlock));
    SAY(pthread_rwlock_timedrdlock(rwlock, &none));
    SAY(pthread_rwlock_timedwrlock(rwlock, &none));
    SAY(pthread_rwlock_clockrdlock(rwlock, CLOCK_PROCESS_CPUTIME_ID, &later));
    SAY(pthread_rwlock_clockwrlock(rwlock, CLOCK_PROCESS_CPUTIME_ID, &later));
    everything_elsewhere(rwlock);
}

static void *spin_trylock(void *spin)
{
    return (void *)(intptr_t)pthread_spin_trylock(spin);
}

static void spins(int shared)
{
    pthread_spinlock_t spin;
    memset((void *)&spin, 0x5a, sizeof spin);
    SAY(pthread_spin_init(&spin, shared));
    SAY(pthread_spin_lock(&spin));
    SAY(pthread_spin_trylock(&spin));
    SAY(elsewhere(spin_trylock, (void *)&spin));
    SAY(pthread_spin_unlock(&spin));
    SAY(pthread_spin_trylock(&spin));
    SAY(pthread_spin_unlock(&spin));
    SAY(pthread_spin_destroy(&spin));
}

int main(void)
{
    exercise(&plain);
    reads_twice(&plain);
    readers_meet(&plain);
    exercise(&writers_first);
    for (int shared = 0; shared < 2; shared++) {
        pthread_rwlockattr_t attributes;
        pthread_rwlock_t rwlock;
        memset(&rwlock, 0x5a, sizeof rwlock);
        DO(pthread_rwlockattr_init(&attributes));
        DO(pthread_rwlockattr_setpshared(&attributes, shared));
        SAY(pthread_rwlock_init(&rwlock, &attributes));
        exercise(&rwlock);
        reads_twice(&rwlock);
        readers_meet(&rwlock);
        SAY(pthread_rwlock_wrlock(&rwlock));
        SAY(pthread_rwlock_init(&rwlock, &attributes));
        exercise(&rwlock);
        SAY(pthread_rwlock_destroy(&rwlock));
        spins(shared);
    }
    return 0;
}
