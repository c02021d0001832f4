/* Lets writes below one folder fail, for a process that has this library preloaded: `arm(folder, number, kind)` in it says which.

   The number-th write fails: with kind 0 (no space left) it and all after it, with kind 1 (an error of the device) it alone; with kind 2 it
   writes half of what it was given, as a write may. `disarm()` says how many writes there were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long seen, wanted = -1;
static int kind;

void arm(const char *below, long number, int how) {
    strncpy(folder, below, sizeof folder - 1);
    seen = 0, wanted = number, kind = how;
}

long disarm(void) {
    wanted = -1;
    return seen;
}

static int ours(int descriptor) {
    char link[64], path[PATH_MAX];
    if (wanted < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return strncmp(path, folder, strlen(folder)) == 0;
}

/* 0: let it be, 1: fail, 2: half of it */
static int fate(int descriptor) {
    if (!ours(descriptor)) return 0;
    long number = ++seen;
    if (kind == 2) return number == wanted ? 2 : 0;
    if (number == wanted || (kind == 0 && number > wanted)) {
        errno = kind == 0 ? ENOSPC : EIO;
        return 1;
    }
    return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int descriptor, const void *data, size_t size) {
    int now = fate(descriptor);
    if (now == 1) return -1;
    return REAL(write)(descriptor, data, now == 2 && size > 1 ? size / 2 : size);
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t at) {
    int now = fate(descriptor);
    if (now == 1) return -1;
    return REAL(pwrite64)(descriptor, data, now == 2 && size > 1 ? size / 2 : size, at);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    int now = fate(descriptor);
    if (now == 1) return -1;
    return REAL(writev)(descriptor, parts, now == 2 && count > 1 ? count / 2 : count);
}

int fsync(int descriptor) {
    return fate(descriptor) == 1 ? -1 : REAL(fsync)(descriptor);
}

size_t fwrite(const void *data, size_t size, size_t count, FILE *stream) {
    int now = fate(fileno(stream));
    if (now == 1) return 0;
    return REAL(fwrite)(data, size, now == 2 && count > 1 ? count / 2 : count, stream);
}
