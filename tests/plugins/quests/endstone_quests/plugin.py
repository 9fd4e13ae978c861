"""Daily quests, as a plugin for Endstone: coroutines work out the progress, the server thread hands out rewards."""

import asyncio
import queue

import endstone.asyncio
from endstone.plugin import Plugin

from .board import Board

TOWNS = ("Northport", "Oakham", "Redstone Hill", "Saltmarsh", "Eastwatch")
TICK_SECONDS = 0.05


class Quests(Plugin):
    api_version = "0.11"
    prefix = "Quests"

    def on_enable(self) -> None:
        self.save_default_config()
        boards, quests, players = (int(self.config[key]) for key in ("boards", "quests", "players"))
        self._boards = [Board(TOWNS[number % len(TOWNS)], quests, players) for number in range(boards)]
        self._players = players
        self._finished: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
        self._rewards: dict[int, int] = {}
        self._jobs = [endstone.asyncio.submit(self.watch_board(board)) for board in self._boards]
        self._jobs.append(endstone.asyncio.submit(self.change_days()))
        self.server.scheduler.run_task(self, self.hand_out_rewards, delay=1, period=1)

    def on_disable(self) -> None:
        for job in self._jobs:
            job.cancel()
        self.logger.info(f"{sum(self._rewards.values())} rewards handed out")

    async def watch_board(self, board: Board) -> None:
        """Follows one board until the plugin is disabled."""
        while True:
            await self.collect_finished(board)
            await asyncio.sleep(TICK_SECONDS)

    async def collect_finished(self, board: Board) -> None:
        async for name, player in board.finished():
            self._finished.put((name, player))

    async def change_days(self) -> None:
        """Starts a new day on all boards at once."""
        while True:
            await asyncio.gather(*(self.new_day(board) for board in self._boards))
            await asyncio.sleep(20 * TICK_SECONDS)

    async def new_day(self, board: Board) -> None:
        for quest in board.quests:
            quest.goal = 1 + (quest.goal * 7 + board.day) % 4
            await asyncio.sleep(0)

    def hand_out_rewards(self) -> None:
        """On the server thread, every tick."""
        while not self._finished.empty():
            _, player = self._finished.get()
            self._rewards[player] = self._rewards.get(player, 0) + 1
        self.update_rankings()

    def update_rankings(self) -> None:
        """Who leads in each town."""
        for board in self._boards:
            self._leader = max(range(self._players), key=lambda player: self.score(board, player))

    def score(self, board: Board, player: int) -> int:
        points = sum(quest.collected.get(player, 0) for quest in board.quests[:8])
        return points + 10 * self._rewards.get(player, 0)
