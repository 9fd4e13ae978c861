"""A board of quests, and how far the players are with them."""

from collections.abc import AsyncIterator, Iterator


class Quest:
    """Something to collect."""

    def __init__(self, number: int) -> None:
        self.name = f"quest {number}"
        self.goal = 1 + number % 4
        self.collected: dict[int, int] = {}

    def advance(self, player: int, amount: int) -> bool:
        """Adds to a player's count; true when that reaches the goal."""
        count = self.collected.get(player, 0) + amount
        done = count >= self.goal
        self.collected[player] = 0 if done else count
        return done


class Board:
    """The quests of one town."""

    def __init__(self, town: str, quests: int, players: int) -> None:
        self.town = town
        self.players = players
        self.quests = [Quest(number) for number in range(quests)]
        self.day = 0

    def steps(self) -> Iterator[tuple[Quest, int]]:
        """Who collected something for which quest since the last look."""
        self.day += 1
        for number, quest in enumerate(self.quests):
            yield quest, (self.day * 31 + number * 17) % self.players

    async def finished(self) -> AsyncIterator[tuple[str, int]]:
        """Quests that were finished by the last steps."""
        for quest, player in self.steps():
            if quest.advance(player, 1 + player % 3):
                yield quest.name, player
