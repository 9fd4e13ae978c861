"""Runs greenlets of every kind, as fast as they go; after `truth.py`, whose functions run on the other threads."""
import time


def spin(microseconds):
    end = time.perf_counter_ns() + microseconds * 1000
    while time.perf_counter_ns() < end:
        pass


def main_greenlet():
    import greenlet

    current = greenlet.getcurrent()
    while current.parent is not None:
        current = current.parent
    return current


# The same functions in all greenlets and in none: their frames have the same sizes.
def outer_of(n, inner):
    if n:
        return outer_of(n - 1, inner)
    return inner()


def through_c(n, inner):
    if n:
        return max([n], key=lambda _: through_c(n - 1, inner) or 0)
    return inner()


def a_work():
    spin(60)


def a_switch(back):
    sorted([3, 1, 2], key=lambda n: (spin(20), n)[1])
    back.switch()
    spin(40)
    list(map(lambda _: spin(20), [1, 2]))


def a_greenlet(back):
    while True:
        a_work()
        outer_of(3, lambda: a_switch(back))
        through_c(2, lambda: a_switch(back))


def b_key(n):
    spin(30)
    return n


def b_greenlet(back):
    def values():
        for n in range(5):
            sorted([2, 1], key=b_key)
            back.switch()
            yield n

    while True:
        through_c(1, lambda: list(values()))
        back.switch()
        outer_of(2, lambda: b_key(1))


def dying(back):
    try:
        spin(30)
        back.switch()
    finally:
        b_key(1)
        list(map(b_key, [1, 2]))


def by_main(depth, target):
    spin(20)
    if depth:
        return max([depth], key=lambda _: by_main(depth - 1, target) or 0)
    target.switch()
    # Nothing of Python's but built-in functions: no event comes, while the stack has what may look like the other's.
    sorted(range(3000), key=abs)
    spin(20)
    list(map(abs, range(3000)))


def begun():
    """Two greenlets that are in the middle of their work."""
    import greenlet

    main = main_greenlet()
    two = [greenlet.greenlet(a_greenlet), greenlet.greenlet(b_greenlet)]
    for one in two:
        for depth in (2, 0):
            outer_of(depth, lambda: one.switch(main))
    return two


def swap(two, end):
    import greenlet

    main = main_greenlet()
    while time.monotonic() < end:
        for depth in range(4):
            for one in two:
                by_main(depth, one)
                outer_of(depth, lambda: by_main(0, one))
        # Those that end: by themselves, by an exception, with their last reference.
        greenlet.greenlet(lambda: a_work()).switch()
        short = greenlet.greenlet(dying)
        short.switch(main)
        if depth % 2:
            try:
                short.throw(KeyError)
            except KeyError:
                spin(10)
        del short
        in_greenlet = greenlet.greenlet(lambda: languages_alike())
        in_greenlet.switch()


def languages_alike():
    def numbers():
        for n in range(3):
            spin(10)
            yield n

    return sum(numbers()) + len([n for n in numbers()])


def swapping(seconds, two=None):
    """This thread swaps stacks; two others do not and are followed exactly."""
    global check
    checking, check = check, lambda: None
    end = time.monotonic() + seconds

    def plain():
        watch_me(True)
        while time.monotonic() < end:
            everything()
        watch_me(False)

    threads = [threading.Thread(target=plain) for _ in range(2)]
    for thread in threads:
        thread.start()
    watch_me(True)
    try:
        swap(two or begun(), end)
    finally:
        watch_me(False)
        check = checking
        for thread in threads:
            thread.join()
