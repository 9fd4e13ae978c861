// Exceptions thrown through twenty frames, each with something to destroy, as large C++ programs do it.

namespace {

struct Guard {
    unsigned long *alive;
    explicit Guard(unsigned long *count) : alive(count) { ++*alive; }
    ~Guard() { --*alive; }
};

__attribute__((noinline)) unsigned long descend(unsigned depth, unsigned long *alive) {
    Guard guard(alive);
    if (depth == 0)
        throw *alive;
    // What follows the call keeps it from being a jump.
    return descend(depth - 1, alive) + 1;
}

}

// How many guards were alive when it was thrown; 0 when one of them was not destroyed on the way.
extern "C" unsigned long throw_through(unsigned frames) {
    unsigned long alive = 0;
    try {
        return descend(frames - 1, &alive) * 0;
    } catch (unsigned long thrown) {
        return alive == 0 ? thrown : 0;
    }
}
