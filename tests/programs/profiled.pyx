# cython: profile=True, language_level=3
"""Functions that Cython compiled, and that tell of themselves as Python's do."""


def spinning(n):
    """Runs long enough to be sampled."""
    cdef long i
    cdef double value = 0
    for i in range(n):
        value += i ^ (i >> 3)
    return value


def calling(function, n):
    return function(n)


def numbers(function, n):
    for i in range(n):
        yield function(i)


def raising(function):
    function(1)
    raise KeyError


cdef class Counter:
    cdef long count

    def add(self, function, n):
        self.count += 1
        return function(n)
