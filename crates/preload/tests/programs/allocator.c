/* An allocator under a lock: no lock call allocates, whether it waits or not. */
#include "said.h"

enum { THREADS = 4, STEPS = 3000, ROOM = 1 << 26 };

static char room[ROOM] __attribute__((aligned(16)));
static size_t used;
static pthread_mutex_t of_room = PTHREAD_MUTEX_INITIALIZER;
static __thread int in_call;

#define CALL(expression) \
    do { \
        in_call = 1; \
        DO(expression); \
        in_call = 0; \
    } while (0)

void *malloc(size_t size)
{
    static const char message[] = "a lock call allocates\n";
    if (in_call) {
        ssize_t written = write(1, message, sizeof message - 1);
        _exit(written > 0 ? 1 : 2);
    }
    in_call = 1;
    pthread_mutex_lock(&of_room);
    size = (size + 31) & ~(size_t)15;
    char *made = used + size <= ROOM ? room + used : NULL;
    if (made)
        used += size;
    pthread_mutex_unlock(&of_room);
    in_call = 0;
    if (made)
        *(size_t *)made = size - 16;
    return made ? made + 16 : NULL;
}

void *calloc(size_t count, size_t size)
{
    /* Never given back, so zeros. */
    return malloc(count * size);
}

void free(void *made)
{
    (void)made;
}

void *realloc(void *made, size_t size)
{
    void *other = malloc(size);
    if (made && other) {
        size_t before = *(size_t *)((char *)made - 16);
        memcpy(other, made, before < size ? before : size);
    }
    return other;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile long count;

static void *locks(void *argument)
{
    for (int step = 0; step < STEPS; step++) {
        struct timespec soon = after(CLOCK_REALTIME, 0);
        CALL(pthread_mutex_lock(&mutex));
        if (step % 64 == 0)
            sched_yield();
        if (step % 256 == 0) {
            in_call = 1;
            int result = pthread_cond_timedwait(&cond, &mutex, &soon);
            in_call = 0;
            MUST(result == 0 || result == ETIMEDOUT);
        }
        count++;
        CALL(pthread_cond_signal(&cond));
        CALL(pthread_mutex_unlock(&mutex));
        CALL(pthread_mutex_lock(&recursive));
        CALL(pthread_mutex_unlock(&recursive));
        if (step % 4)
            CALL(pthread_rwlock_rdlock(&rwlock));
        else
            CALL(pthread_rwlock_wrlock(&rwlock));
        CALL(pthread_rwlock_unlock(&rwlock));
        MUST(malloc(16) != NULL);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        DO(pthread_create(&threads[i], NULL, locks, NULL));
    for (int i = 0; i < THREADS; i++)
        DO(pthread_join(threads[i], NULL));
    MUST(count == THREADS * STEPS);
    puts("no call has allocated");
    return 0;
}
