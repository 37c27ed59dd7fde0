/* What the programs say: the value of each expression, by name where it is an error. Times and addresses are not said, so that
   a program says the same over any latch. */
#ifndef SAID_H
#define SAID_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline const char *said_name(int result)
{
    switch (result) {
    case 0: return "0";
    case EBUSY: return "EBUSY";
    case EDEADLK: return "EDEADLK";
    case EPERM: return "EPERM";
    case ETIMEDOUT: return "ETIMEDOUT";
    case EINVAL: return "EINVAL";
    case EAGAIN: return "EAGAIN";
    case EOWNERDEAD: return "EOWNERDEAD";
    case ENOTRECOVERABLE: return "ENOTRECOVERABLE";
    default: return "another error";
    }
}

#define SAY(expression) \
    do { \
        errno = 77; \
        int said_result = (expression); \
        printf("%s = %s%s\n", #expression, said_name(said_result), errno == 77 ? "" : ", errno changed"); \
    } while (0)

/* What must not fail. */
#define DO(expression) \
    do { \
        int done_result = (expression); \
        if (done_result != 0) { \
            printf("%s:%d: %s = %s\n", __FILE__, __LINE__, #expression, said_name(done_result)); \
            exit(1); \
        } \
    } while (0)

#define MUST(condition) \
    do { \
        if (!(condition)) { \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

static inline struct timespec after(clockid_t clock, long milliseconds)
{
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_nsec += milliseconds % 1000 * 1000000;
    at.tv_sec += milliseconds / 1000 + at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static inline int is_past(clockid_t clock, struct timespec at)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec > at.tv_sec || (now.tv_sec == at.tv_sec && now.tv_nsec >= at.tv_nsec);
}

/* Whether a process, or a thread of this one, is asleep: the kernel's file `stat` of it is in `directory`. */
static inline int is_asleep(const char *directory, int number)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "%s/%d/stat", directory, number);
    int file = open(path, O_RDONLY);
    MUST(file >= 0);
    ssize_t length = read(file, text, sizeof text - 1);
    MUST(length > 0);
    close(file);
    text[length] = 0;
    /* Behind the name, which may hold anything. */
    char *end = strrchr(text, ')');
    MUST(end != NULL);
    return end[2] == 'S';
}

/* Runs `act` in another thread; what it returns. */
static inline int elsewhere(void *(*act)(void *), void *argument)
{
    pthread_t thread;
    void *result;
    DO(pthread_create(&thread, NULL, act, argument));
    DO(pthread_join(thread, &result));
    return (int)(intptr_t)result;
}

#endif
