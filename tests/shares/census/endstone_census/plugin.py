"""Takes 3 ms of each tick below C functions that call back into it."""

from time import perf_counter

from endstone.plugin import Plugin

TICK_SECONDS = 0.003
PEOPLE = [(number * 7919 % 211, f"player {number}") for number in range(60)]
spent = 0.0


class Census(Plugin):
    api_version = "0.11"

    def on_enable(self) -> None:
        self.server.scheduler.run_task(self, self.count_people, delay=1, period=1)

    def count_people(self) -> None:
        global spent
        begun = perf_counter()
        while perf_counter() - begun < TICK_SECONDS:
            sorted(PEOPLE, key=age)
        spent += perf_counter() - begun


def age(person: tuple[int, str]) -> int:
    return sum(map(abs, (person[0], 1, 2)))
