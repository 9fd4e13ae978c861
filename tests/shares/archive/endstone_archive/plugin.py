"""Takes 4 ms of each tick in the standard library and in a dependency: both are its time."""

import json
from time import perf_counter

import numpy
from endstone.plugin import Plugin

TICK_SECONDS = 0.004
RECORDS = [{"player": f"player {number}", "visits": number, "home": [number, 64, -number]} for number in range(20)]
spent = 0.0


class Archive(Plugin):
    api_version = "0.11"

    def on_enable(self) -> None:
        self.server.scheduler.run_task(self, self.file_records, delay=1, period=1)

    def file_records(self) -> None:
        global spent
        begun = perf_counter()
        while perf_counter() - begun < TICK_SECONDS:
            text = json.dumps(RECORDS, indent=1)
            numpy.median(numpy.array([record["visits"] for record in json.loads(text)]))
        spent += perf_counter() - begun
