"""Threads that are born and die while sessions begin and end, and threads inside other tools' callbacks."""
import sys
import threading

M = sys.monitoring


# Threads that are born, do a little of everything and die. `check` compares.
def nested(n):
    check()
    if n:
        return nested(n - 1)
    return max([1], key=lambda _: check())


def generated():
    for _ in range(2):
        check()
        yield
        check()


def live(n):
    nested(n)
    for _ in generated():
        check()
    try:
        failing(n)
    except KeyError:
        check()
    if n % 3 == 0:
        # Silent at the end of a thread: it dies with its frames unwound, not returned from.
        raise SystemExit
    check()


def failing(n):
    if n == 0:
        check()
        raise KeyError
    try:
        failing(n - 1)
    finally:
        check()


born = 0
running = True
changed = threading.Condition()


def bear():
    """One thread after the other; each is dead before the next is born, so that its number and its memory are used again."""
    global born
    n = 0
    while running:
        child = threading.Thread(target=live, args=(n % 7,))
        child.start()
        child.join()
        n += 1
        with changed:
            born += 1
            changed.notify_all()


def begin_births():
    global parents
    sys.setswitchinterval(0.0005)
    parents = [threading.Thread(target=bear) for _ in range(5)]
    for parent in parents:
        parent.start()


def await_births(count):
    with changed:
        until = born + count
        assert changed.wait_for(lambda: born >= until, 120), "no thread is born any more"


def end_births():
    global running
    running = False
    for parent in parents:
        parent.join()


# A function that other tools look at.
def leaf():
    check()
    return 1


def victim(fail):
    value = leaf()
    value += max([1], key=lambda _: leaf())
    if fail:
        raise KeyError
    return value


def driven(fail):
    check()
    try:
        victim(fail)
    except KeyError:
        check()
    leaf()
    check()
    nested(2)


def at_each_place(install, remove, kinds):
    """A session begins, or ends and begins, while the first call of the other tool of each kind is inside its callback."""
    for kind in kinds:
        for fail in (False, True):
            for running_before in (False, True):
                done = False

                def meanwhile():
                    nonlocal done
                    if not done:
                        done = True
                        if running_before:
                            end_elsewhere()
                        begin_elsewhere()
                        # No event has come of this thread yet.
                        check()

                if running_before:
                    begin_elsewhere()
                    driven(fail)
                install(kind, meanwhile)
                try:
                    driven(fail)
                finally:
                    remove(kind)
                if done or running_before:
                    end_elsewhere()
                assert done == (kind not in (ONLY_RETURNING if fail else ONLY_RAISING)), (kind, fail)
                check()


E = M.events
# What happens in calls that raise, and in those that return, and not in the others.
ONLY_RAISING = (E.RAISE, E.PY_UNWIND, "exception")
ONLY_RETURNING = (E.PY_RETURN,)


def under_monitoring():
    def install(kind, meanwhile):
        def callback(code, *arguments):
            if code is victim.__code__:
                meanwhile()

        M.use_tool_id(0, "other")
        M.register_callback(0, kind, callback)
        M.set_events(0, kind)

    def remove(kind):
        M.set_events(0, 0)
        M.register_callback(0, kind, None)
        M.free_tool_id(0)

    at_each_place(install, remove, (E.PY_START, E.LINE, E.CALL, E.PY_RETURN, E.RAISE, E.PY_UNWIND))


def under_tracing():
    def install(kind, meanwhile):
        def trace(frame, event, argument):
            if frame.f_code is victim.__code__ and event == kind:
                meanwhile()
            return trace

        sys.settrace(trace)

    at_each_place(install, lambda kind: sys.settrace(None), ("call", "line", "return", "exception"))


def under_profiling():
    def install(kind, meanwhile):
        def profile(frame, event, argument):
            if frame.f_code is victim.__code__ and event == kind:
                meanwhile()

        sys.setprofile(profile)

    at_each_place(install, lambda kind: sys.setprofile(None), ("call", "return", "c_call"))
