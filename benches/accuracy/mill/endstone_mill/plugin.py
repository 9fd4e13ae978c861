"""A plugin that does nothing but take known shares of each tick."""

from endstone.plugin import Plugin

from . import work


class Mill(Plugin):
    api_version = "0.11"

    def on_enable(self) -> None:
        self.server.scheduler.run_task(self, work.day, delay=1, period=1)
