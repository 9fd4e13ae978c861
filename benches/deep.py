"""A thread named "deep" whose stack is some forty native frames and a dozen Python functions deep, and whose data fit no cache."""
import ctypes
import random
import threading

DATA = [str(random.random()) for _ in range(200_000)]


def work():
    return sum(hash(DATA[random.randrange(len(DATA))]) for _ in range(500)) % 7


def level(number):
    return max((number,), key=lambda _: level(number - 1)) if number else work()


def run():
    ctypes.CDLL(None).prctl(15, b"deep", 0, 0, 0)
    while True:
        level(6)


threading.Thread(target=run, daemon=True).start()
