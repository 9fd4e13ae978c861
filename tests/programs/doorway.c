// Stands before CPython's PyGILState_Ensure: a library that is loaded before libpython. A thread that asks for the lock while the door is held is kept until the
// interpreter has ended, or for a quarter of a second: as if the scheduler had stopped it there. Or it is kept for ever.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static int (*ensure)(void);
static atomic_int held, for_good, waiting, passed, ended;

// 0 if the function that this one stands before was found.
int doorway_open(const char *library) {
    void *python = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    ensure = python ? (int (*)(void))dlsym(python, "PyGILState_Ensure") : 0;
    return ensure == 0;
}

void doorway_hold(void) {
    atomic_store(&held, 1);
}

void doorway_hold_for_good(void) {
    atomic_store(&for_good, 1);
    doorway_hold();
}

int doorway_waiting(void) {
    return atomic_load(&waiting);
}

// How many have got the lock after they were held.
int doorway_passed(void) {
    return atomic_load(&passed);
}

void doorway_ended(void) {
    atomic_store(&ended, 1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int PyGILState_Ensure(void) {
    if (!atomic_load(&held)) {
        return ensure();
    }
    atomic_store(&waiting, 1);
    while (atomic_load(&for_good)) {
        pause();
    }
    for (double end = now() + 0.25; now() < end && !atomic_load(&ended);) {
        usleep(5000);
    }
    int state = ensure();
    atomic_fetch_add(&passed, 1);
    return state;
}
