/* A fork with locks held and waited for: the child goes on with what its thread held, and starts threads. Processes that share
   memory meet at locks that say so. */
#include "said.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long count;

static void *adding(void *argument)
{
    (void)argument;
    for (int i = 0; i < 2000; i++) {
        DO(pthread_mutex_lock(&plain));
        DO(pthread_mutex_lock(&recursive));
        DO(pthread_rwlock_wrlock(&rwlock));
        count++;
        DO(pthread_rwlock_unlock(&rwlock));
        DO(pthread_mutex_unlock(&recursive));
        DO(pthread_mutex_unlock(&plain));
        DO(pthread_cond_broadcast(&cond));
    }
    return NULL;
}

static void *waiting(void *argument)
{
    (void)argument;
    DO(pthread_mutex_lock(&plain));
    while (count < 6000)
        DO(pthread_cond_wait(&cond, &plain));
    DO(pthread_mutex_unlock(&plain));
    return NULL;
}

static void adds(void)
{
    pthread_t threads[4];
    count = 0;
    for (int i = 0; i < 3; i++)
        DO(pthread_create(&threads[i], NULL, adding, NULL));
    DO(pthread_create(&threads[3], NULL, waiting, NULL));
    for (int i = 0; i < 4; i++)
        DO(pthread_join(threads[i], NULL));
    MUST(count == 6000);
}

static void exits_well(pid_t child)
{
    int status;
    MUST(waitpid(child, &status, 0) == child);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int never;

static void *waits_for_ever(void *argument)
{
    DO(pthread_mutex_lock(&plain));
    never = 1;
    for (;;)
        DO(pthread_cond_wait(&cond, &plain));
    return argument;
}

/* A child whose parent had a waiter destroys the variable: that has no end, and is asleep. */
static void destroys(void)
{
    pthread_t thread;
    struct timespec pause = {0, 5000000};
    int is_waiting = 0, looks = 0, status;
    DO(pthread_create(&thread, NULL, waits_for_ever, NULL));
    while (!is_waiting) {
        DO(pthread_mutex_lock(&plain));
        is_waiting = never;
        DO(pthread_mutex_unlock(&plain));
    }
    fflush(stdout);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        /* A destruction is no cancellation point. */
        DO(pthread_cancel(pthread_self()));
        pthread_cond_destroy(&cond);
        _exit(1);
    }
    /* What turns is never asleep, however busy the machine is. */
    do
        nanosleep(&pause, NULL);
    while (!is_asleep("/proc", child) && ++looks < 1000);
    MUST(kill(child, SIGKILL) == 0);
    MUST(waitpid(child, &status, 0) == child);
    MUST(WIFSIGNALED(status));
    MUST(looks < 1000);
    puts("a destruction sleeps");
}

struct shared {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    pthread_spinlock_t spin;
    pthread_cond_t cond;
    long count;
    int turn, ended;
};

static void together(struct shared *shared, int me)
{
    for (int i = 0; i < 2000; i++) {
        DO(pthread_mutex_lock(&shared->mutex));
        while (i % 100 == 0 && shared->turn != me && !shared->ended)
            DO(pthread_cond_wait(&shared->cond, &shared->mutex));
        shared->turn = 1 - me;
        DO(pthread_rwlock_wrlock(&shared->rwlock));
        DO(pthread_spin_lock(&shared->spin));
        shared->count++;
        DO(pthread_spin_unlock(&shared->spin));
        DO(pthread_rwlock_unlock(&shared->rwlock));
        DO(pthread_cond_signal(&shared->cond));
        DO(pthread_mutex_unlock(&shared->mutex));
    }
    DO(pthread_mutex_lock(&shared->mutex));
    shared->ended = 1;
    DO(pthread_cond_signal(&shared->cond));
    DO(pthread_mutex_unlock(&shared->mutex));
}

static void processes(void)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(shared != MAP_FAILED);
    pthread_mutexattr_t of_mutex;
    pthread_rwlockattr_t of_rwlock;
    pthread_condattr_t of_cond;
    DO(pthread_mutexattr_init(&of_mutex));
    DO(pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED));
    DO(pthread_mutex_init(&shared->mutex, &of_mutex));
    DO(pthread_rwlockattr_init(&of_rwlock));
    DO(pthread_rwlockattr_setpshared(&of_rwlock, PTHREAD_PROCESS_SHARED));
    DO(pthread_rwlock_init(&shared->rwlock, &of_rwlock));
    DO(pthread_condattr_init(&of_cond));
    DO(pthread_condattr_setpshared(&of_cond, PTHREAD_PROCESS_SHARED));
    DO(pthread_cond_init(&shared->cond, &of_cond));
    DO(pthread_spin_init(&shared->spin, PTHREAD_PROCESS_SHARED));
    fflush(stdout);
    pid_t child = fork();
    MUST(child >= 0);
    together(shared, child == 0);
    if (child == 0)
        _exit(0);
    exits_well(child);
    MUST(shared->count == 4000);
    puts("two processes have met");
}

/* With an argument the thread also holds over the fork what has an owner. Under glibc the child is another owner. */
int main(int count_of_arguments, char **arguments)
{
    pthread_t threads[4];
    int owns = count_of_arguments > 1 && strcmp(arguments[1], "owned") == 0;
    adds();
    for (int round = 0; round < 20; round++) {
        /* Held by this thread, while others want it. */
        DO(pthread_mutex_lock(&plain));
        if (owns) {
            DO(pthread_mutex_lock(&recursive));
            DO(pthread_mutex_lock(&recursive));
            DO(pthread_rwlock_wrlock(&rwlock));
        }
        count = 0;
        for (int i = 0; i < 3; i++)
            DO(pthread_create(&threads[i], NULL, adding, NULL));
        DO(pthread_create(&threads[3], NULL, waiting, NULL));
        struct timespec pause = {0, round % 4 * 500000};
        nanosleep(&pause, NULL);
        fflush(stdout);
        pid_t child = fork();
        MUST(child >= 0);
        if (owns) {
            DO(pthread_rwlock_unlock(&rwlock));
            DO(pthread_mutex_unlock(&recursive));
            DO(pthread_mutex_unlock(&recursive));
        }
        DO(pthread_mutex_unlock(&plain));
        if (child == 0) {
            adds();
            exit(0);
        }
        for (int i = 0; i < 4; i++)
            DO(pthread_join(threads[i], NULL));
        MUST(count == 6000);
        exits_well(child);
    }
    puts("children have counted");
    processes();
    destroys();
    return 0;
}
