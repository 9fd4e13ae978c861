"""Threads that call Python in a given order."""
import queue
import threading

orders = {name: queue.Queue() for name in "ABC"}
done = queue.Queue()


def looks():
    look()


def loop(orders):
    while True:
        if orders.get() is None:
            return
        looks()
        looks()
        done.put(None)


threads = [threading.Thread(target=loop, args=(orders[name],)) for name in "ABC"]
for thread in threads:
    thread.start()


def in_order(names):
    for name in names:
        orders[name].put(True)
        done.get()


def end():
    for name in "ABC":
        orders[name].put(None)
    for thread in threads:
        thread.join()
