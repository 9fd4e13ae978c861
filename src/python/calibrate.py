"""What calibration runs under monitoring. Every function here calls nothing, so that its enter is followed by its own leave."""


def plain(argument=None):
    return argument


def constant(argument=None):
    return 1


def failing(argument=None):
    raise ValueError


def generator():
    while True:
        try:
            if (yield 1):
                return
        except ValueError:
            pass


def nested(argument=None):
    return plain()


def run():
    plain()
    constant()
    nested()
    list(map(plain, (1,)))
    list(map(constant, (1,)))
    list(map(nested, (1,)))
    for call in (failing, lambda: list(map(failing, (1,)))):
        try:
            call()
        except ValueError:
            pass
    # Started, resumed, thrown into, resumed to its end; then started and ended by an exception.
    one = generator()
    next(one)
    next(one)
    one.throw(ValueError)
    try:
        one.send(True)
    except StopIteration:
        pass
    two = generator()
    list(zip(two, (1, 2)))
    try:
        two.throw(KeyError)
    except KeyError:
        pass


def run_deeper():
    """The same from another depth of the C stack."""
    list(map(lambda _: run(), (1,)))
    sorted((1, 2), key=lambda n: run() or n)


codes = [f.__code__ for f in (plain, constant, failing, generator)]
