/* Loads the library loaded.so beside it. */
#include "said.h"

#include <dlfcn.h>

int main(int count, char **arguments)
{
    char path[4096];
    MUST(count == 1 && strrchr(arguments[0], '/') != NULL);
    *strrchr(arguments[0], '/') = 0;
    snprintf(path, sizeof path, "%s/loaded.so", arguments[0]);
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL)
        puts(dlerror());
    MUST(library != NULL);
    return 0;
}
