/* More threads than CPUs: counters under every kind of lock, a bounded queue, and objects that their last user frees. */
#include "said.h"

#include <sys/mman.h>

enum { THREADS = 8, STEPS = 400 };

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t writers_first = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_spinlock_t spin;
/* Two words that are equal whenever no thread is inside. */
static volatile long counts[6][2];

static void add(int which)
{
    long seen = counts[which][0];
    MUST(counts[which][1] == seen);
    counts[which][0] = seen + 1;
    if (seen % 64 == 0)
        sched_yield();
    counts[which][1] = seen + 1;
}

static void *counting(void *argument)
{
    unsigned random = (unsigned)(intptr_t)argument * 2654435761u + 1;
    for (int step = 0; step < STEPS; step++) {
        struct timespec at = after(CLOCK_REALTIME, 60000), soon = after(CLOCK_MONOTONIC, 0);
        random = random * 1664525 + 1013904223;
        if (random >> 28 == 0)
            DO(pthread_mutex_timedlock(&plain, &at));
        else if (random >> 28 > 1 || pthread_mutex_clocklock(&plain, CLOCK_MONOTONIC, &soon) != 0)
            DO(pthread_mutex_lock(&plain));
        add(0);
        DO(pthread_mutex_unlock(&plain));

        DO(pthread_mutex_lock(&recursive));
        DO(pthread_mutex_lock(&recursive));
        add(1);
        DO(pthread_mutex_unlock(&recursive));
        add(1);
        DO(pthread_mutex_unlock(&recursive));

        while (pthread_mutex_trylock(&checked) != 0)
            sched_yield();
        add(2);
        DO(pthread_mutex_unlock(&checked));

        for (int which = 3; which < 5; which++) {
            pthread_rwlock_t *lock = which == 3 ? &rwlock : &writers_first;
            if (random >> 30 == 0) {
                DO(pthread_rwlock_wrlock(lock));
                add(which);
            } else {
                DO(pthread_rwlock_rdlock(lock));
                long seen = counts[which][0];
                MUST(counts[which][1] == seen);
                if (which == 3 && random >> 30 == 1) {
                    DO(pthread_rwlock_rdlock(lock));
                    MUST(counts[which][0] == seen && counts[which][1] == seen);
                    DO(pthread_rwlock_unlock(lock));
                }
            }
            DO(pthread_rwlock_unlock(lock));
        }

        DO(pthread_spin_lock(&spin));
        add(5);
        DO(pthread_spin_unlock(&spin));
    }
    return NULL;
}

enum { ROOM = 4, ITEMS = 10000 };
static pthread_cond_t has_room = PTHREAD_COND_INITIALIZER, has_items = PTHREAD_COND_INITIALIZER;
static long items[ROOM], queued, put, taken, sum;

static void *putting(void *argument)
{
    (void)argument;
    for (;;) {
        DO(pthread_mutex_lock(&plain));
        while (queued == ROOM && put < ITEMS)
            DO(pthread_cond_wait(&has_room, &plain));
        if (put == ITEMS) {
            DO(pthread_mutex_unlock(&plain));
            return NULL;
        }
        items[queued++] = ++put;
        if (put == ITEMS)
            DO(pthread_cond_broadcast(&has_room));
        DO(pthread_mutex_unlock(&plain));
        DO(pthread_cond_signal(&has_items));
    }
}

static void *taking(void *argument)
{
    struct timespec soon;
    int result;
    (void)argument;
    for (;;) {
        DO(pthread_mutex_lock(&plain));
        while (queued == 0 && taken < ITEMS) {
            soon = after(CLOCK_REALTIME, 1);
            result = taken % 2 ? pthread_cond_timedwait(&has_items, &plain, &soon) : pthread_cond_wait(&has_items, &plain);
            MUST(result == 0 || result == ETIMEDOUT);
        }
        if (taken == ITEMS) {
            DO(pthread_mutex_unlock(&plain));
            return NULL;
        }
        sum += items[--queued];
        taken++;
        DO(pthread_cond_signal(&has_room));
        if (taken == ITEMS)
            DO(pthread_cond_broadcast(&has_items));
        DO(pthread_mutex_unlock(&plain));
    }
}

/* An object on pages of its own, which the last of its users gives back to the system while another one may still be on its way
   out of the unlock before. */
struct object {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    int users;
};

static struct object *objects[THREADS / 2];
static pthread_barrier_t barrier;

static void *using(void *argument)
{
    long number = (long)(intptr_t)argument;
    struct object **place = &objects[number / 2];
    for (int round = 0; round < 500; round++) {
        if (number % 2 == 0) {
            struct object *object = mmap(NULL, sizeof *object, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            MUST(object != MAP_FAILED);
            object->users = 2;
            *place = object;
        }
        pthread_barrier_wait(&barrier);
        struct object *object = *place;
        int is_last;
        for (int i = 0; i < 3; i++) {
            DO(pthread_mutex_lock(&object->mutex));
            DO(pthread_mutex_unlock(&object->mutex));
        }
        if (round % 2) {
            DO(pthread_mutex_lock(&object->mutex));
            is_last = --object->users == 0;
            DO(pthread_mutex_unlock(&object->mutex));
        } else {
            DO(pthread_rwlock_wrlock(&object->rwlock));
            is_last = --object->users == 0;
            DO(pthread_rwlock_unlock(&object->rwlock));
        }
        if (is_last)
            MUST(munmap(object, sizeof *object) == 0);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void all(void *(*act)(void *), void *(*other)(void *))
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        DO(pthread_create(&threads[i], NULL, i % 2 ? other : act, (void *)(intptr_t)i));
    for (int i = 0; i < THREADS; i++)
        DO(pthread_join(threads[i], NULL));
}

int main(void)
{
    DO(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    all(counting, counting);
    MUST(counts[0][0] == THREADS * STEPS && counts[1][0] == 2 * THREADS * STEPS && counts[2][0] == THREADS * STEPS);
    MUST(counts[3][0] == counts[4][0] && counts[5][0] == THREADS * STEPS);
    all(putting, taking);
    MUST(taken == ITEMS && sum == (long)ITEMS * (ITEMS + 1) / 2);
    DO(pthread_barrier_init(&barrier, NULL, THREADS));
    all(using, using);
    puts("all counts are right");
    return 0;
}
