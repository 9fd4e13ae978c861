/* The native half of the mill: functions that compute for a time each and call Python functions, which call back. Each writes down how long it
 * really computed. Called through ctypes' PyDLL, so the interpreter's lock is held. */
#include <stdint.h>
#include <time.h>

extern void *PyObject_CallNoArgs(void *callable);
extern void Py_DecRef(void *object);

enum { SMELT, BLOW, POUR, WEIGH, COUNT, SOW, FUNCTIONS };

/* Nanoseconds that half a turn of each takes, and nanoseconds that all turns took. */
uint64_t mill_half[FUNCTIONS];
uint64_t mill_spent[FUNCTIONS];

static volatile uint64_t state = 1;

static inline uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline __attribute__((always_inline)) void grind(int function) {
    uint64_t begun = now(), end = begun + mill_half[function], at;
    while ((at = now()) < end)
        for (int round = 0; round < 2000; round++)
            state = state * 6364136223846793005u + 1442695040888963407u;
    mill_spent[function] += at - begun;
}

/* An exception is the caller's: ctypes raises it when the function returns. */
static inline __attribute__((always_inline)) void call(void *python) {
    void *result = PyObject_CallNoArgs(python);
    if (result)
        Py_DecRef(result);
}

__attribute__((noinline)) void mill_pour(void) {
    grind(POUR);
    grind(POUR);
}

void mill_smelt(void *stoke) {
    grind(SMELT);
    call(stoke);
    mill_pour();
    grind(SMELT);
}

void mill_blow(void *gauge) {
    grind(BLOW);
    call(gauge);
    grind(BLOW);
}

void mill_weigh(void *haggle) {
    grind(WEIGH);
    call(haggle);
    grind(WEIGH);
}

void mill_count(void) {
    grind(COUNT);
    grind(COUNT);
}

void mill_sow(void *reap) {
    grind(SOW);
    call(reap);
    grind(SOW);
}
