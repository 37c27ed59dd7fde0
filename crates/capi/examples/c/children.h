/* What the examples with several processes share: results that must be so, and children that are awaited. */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clearway.h"

/* Ends the process if a result is not the one that is wanted. */
static inline void expect(clearway_segment_result_t result, clearway_segment_result_t wanted, const char *what) {
    if (result != wanted) {
        fprintf(stderr, "%s: %s\n", what, clearway_segment_result_text(result));
        exit(1);
    }
}

/* Waits until a process with one thread is in the state that the kernel shows so, for that many looks in a row. */
static inline void await_state(pid_t pid, char wanted, int looks) {
    for (int seen = 0; seen < looks; usleep(1000)) {
        char path[64], state = '?';
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        FILE *file = fopen(path, "r");
        if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1 || state == 'Z') {
            fprintf(stderr, "a child has ended: %c\n", state);
            exit(1);
        }
        fclose(file);
        seen = state == wanted ? seen + 1 : 0;
    }
}

/* Waits until a child has ended: killed, or with exit code 0. */
static inline void wait_for(pid_t child, int killed) {
    int status;
    if (waitpid(child, &status, 0) != child || (killed ? !WIFSIGNALED(status) : status != 0)) {
        fprintf(stderr, "a child has ended otherwise: %d\n", status);
        exit(1);
    }
}

#endif
