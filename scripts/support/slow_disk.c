// A disk that is slow while the file $SLOW_DISK exists: each sync of a file takes 400 ms more. To be preloaded into the
// program whose disk it is; the file is looked at all the time, so that its removal ends a wait.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 40, STEP_NS = 10 * 1000 * 1000 };

static void wait_while_slow(void) {
    const char *mark = getenv("SLOW_DISK");
    for (int step = 0; step < STEPS && mark && access(mark, F_OK) == 0; step++) {
        struct timespec span = {0, STEP_NS};
        nanosleep(&span, NULL);
    }
}

int fdatasync(int file) {
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_while_slow();
    return next(file);
}

int fsync(int file) {
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    wait_while_slow();
    return next(file);
}
