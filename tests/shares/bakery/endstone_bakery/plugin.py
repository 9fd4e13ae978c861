"""Takes 5 ms of each tick in functions of its own."""

from time import perf_counter

from endstone.plugin import Plugin

TICK_SECONDS = 0.005
spent = 0.0


class Bakery(Plugin):
    api_version = "0.11"

    def on_enable(self) -> None:
        self.server.scheduler.run_task(self, self.bake, delay=1, period=1)

    def bake(self) -> None:
        global spent
        begun = perf_counter()
        dough = 1
        while perf_counter() - begun < TICK_SECONDS:
            dough = self.knead(dough)
        spent += perf_counter() - begun

    def knead(self, dough: int) -> int:
        for _ in range(50):
            dough = fold(dough)
        return dough


def fold(dough: int) -> int:
    return (dough * 31 + 7) % 65_521
