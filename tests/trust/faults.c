/* Lets calls that change one folder fail, for a process that has this library preloaded: `arm(folder, number, kind)` in it says which.

   Such calls write, sync, rename, make a folder, or open a file for writing. The number-th fails: with kind 0 (no space left) it and all
   after it, with kind 1 (an error of the device) it alone; with kind 2 it writes half of what it was given, as a write may; with kind 3
   the process is killed before it. `disarm()` returns how many calls there were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

/* 0: let it be, 1: fail, 2: half of it */
static int fate_of(const char *path) {
    if (wanted < 0 || strncmp(path, folder, strlen(folder))) return 0;
    long number = ++seen;
    if (kind == 2) return number == wanted ? 2 : 0;
    if (kind == 3 && number == wanted) kill(getpid(), SIGKILL);
    if (number == wanted || (kind == 0 && number > wanted)) {
        errno = kind == 0 ? ENOSPC : EIO;
        return 1;
    }
    return 0;
}

static int fate(int descriptor) {
    char link[64], path[PATH_MAX];
    if (wanted < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return fate_of(path);
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

int rename(const char *from, const char *to) {
    return fate_of(to) == 1 ? -1 : REAL(rename)(from, to);
}

int renameat2(int below, const char *from, int above, const char *to, unsigned flags) {
    return fate_of(to) == 1 ? -1 : REAL(renameat2)(below, from, above, to, flags);
}

int mkdir(const char *path, mode_t mode) {
    return fate_of(path) == 1 ? -1 : REAL(mkdir)(path, mode);
}

static int refused(const char *path, int flags) {
    return flags & (O_WRONLY | O_RDWR | O_CREAT) && fate_of(path) == 1;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = va_arg(rest, mode_t); \
        va_end(rest); \
        return refused(path, flags) ? -1 : REAL(name)(path, flags, mode); \
    }

#define FOPEN(name) \
    FILE *name(const char *path, const char *how) { \
        return refused(path, strpbrk(how, "wa+") ? O_WRONLY : 0) ? NULL : REAL(name)(path, how); \
    }

OPEN(open)
OPEN(open64)
FOPEN(fopen)
FOPEN(fopen64)
