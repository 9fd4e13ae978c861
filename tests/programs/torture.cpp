// A foreign user of SIGPROF: a handler and a timer of its own, as a library for processor time has them.
#include <csignal>
#include <sys/time.h>

namespace {
volatile sig_atomic_t ticks;

void count(int) { ticks = ticks + 1; }

}  // namespace

// 0 when it runs.
extern "C" int foreign_begin(long micros)
{
    struct sigaction action = {};
    action.sa_handler = count;
    action.sa_flags = SA_RESTART;
    const itimerval time = {{0, micros}, {0, micros}};
    return sigaction(SIGPROF, &action, nullptr) | setitimer(ITIMER_PROF, &time, nullptr);
}

extern "C" long foreign_ticks() { return ticks; }
