"""What things cost: a price rises with demand and falls with stock."""

import json

ITEMS = ("diamond", "emerald", "iron_ingot", "oak_log", "redstone", "bread", "saddle", "name_tag")


class Offer:
    """What one shop sells."""

    def __init__(self, number: int) -> None:
        self.item = ITEMS[number % len(ITEMS)]
        self.seller = f"shop{number % 37}"
        self.base = 5 + number * 7919 % 211
        self.stock = 1 + number * 104729 % 64
        self.demand = number % 11

    @property
    def price(self) -> float:
        return self.base * (1.0 + self.demand / 10.0) / (1.0 + self.stock / 64.0)


class Order:
    """What one player wants."""

    def __init__(self, item: str, count: int, limit: float) -> None:
        self.item = item
        self.count = count
        self.limit = limit


def offer_value(offer: Offer) -> tuple[float, int]:
    """Sort key: cheap first, then what there is most of."""
    return (round(offer.price, 2), -offer.stock)


def order_from_json(fields: dict) -> Order:
    """Object hook for orders."""
    return Order(fields["item"], int(fields["count"]), float(fields["limit"]))


def orders_as_json(count: int, tick: int) -> str:
    """The orders that came in since the last tick, as the shop screens send them."""
    return json.dumps(
        [{"item": ITEMS[(tick + n) % len(ITEMS)], "count": 1 + n % 5, "limit": 20 + n * 31 % 180} for n in range(count)]
    )
