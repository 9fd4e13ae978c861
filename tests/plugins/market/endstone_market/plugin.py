"""A market of player shops, as a plugin for Endstone."""

import json
import re

from endstone.event import BroadcastMessageEvent, PluginEnableEvent, ServerLoadEvent, event_handler
from endstone.plugin import Plugin

from .prices import ITEMS, Offer, offer_value, order_from_json, orders_as_json

PLACEHOLDER = re.compile(r"<(\w+)>")
SIGN = "Welcome! <diamond> for a diamond, <emerald> for an emerald, today <bread> for bread and <saddle> for a saddle."


class Market(Plugin):
    api_version = "0.11"
    prefix = "Market"

    def on_enable(self) -> None:
        self.save_default_config()
        self._offers = [Offer(number) for number in range(int(self.config["offers"]))]
        self._orders = int(self.config["orders"])
        self._signs = [SIGN] * int(self.config["signs"])
        self._announce_period = int(self.config["announce_period"])
        # The same orders come every second: making them up is no work of a market.
        self._incoming = [orders_as_json(self._orders, tick) for tick in range(20)]
        self._best: dict[str, Offer] = {}
        self._tick = 0
        self._sold = 0
        self.register_events(self)
        self.server.scheduler.run_task(self, self.update_market, delay=1, period=1)

    def on_disable(self) -> None:
        self.logger.info(f"{self._sold} items sold in {self._tick} ticks")

    @event_handler
    def on_server_load(self, event: ServerLoadEvent) -> None:
        self.logger.info(f"open with {len(self._offers)} offers")

    @event_handler
    def on_plugin_enable(self, event: PluginEnableEvent) -> None:
        self.logger.debug(f"{event.plugin.name} is on")

    @event_handler
    def on_broadcast(self, event: BroadcastMessageEvent) -> None:
        event.message = PLACEHOLDER.sub(self.fill_placeholder, str(event.message))

    def update_market(self) -> None:
        """One tick of the market."""
        self._tick += 1
        self.rank_offers()
        self.serve_orders()
        self.write_signs()
        if self._announce_period and self._tick % self._announce_period == 0:
            self.server.broadcast_message("Best diamond today: <diamond>")

    def rank_offers(self) -> None:
        """Finds the best offer of each item."""
        best: dict[str, Offer] = {}
        for offer in sorted(self._offers, key=offer_value):
            if offer.stock > 0:
                best.setdefault(offer.item, offer)
        self._best = best

    def serve_orders(self) -> None:
        """Sells what players ordered, as far as their limit allows."""
        for order in json.loads(self._incoming[self._tick % len(self._incoming)], object_hook=order_from_json):
            offer = self._best.get(order.item)
            if offer is not None and offer.price <= order.limit:
                self._sold += order.count
                offer.demand = (offer.demand + order.count) % 11

    def write_signs(self) -> None:
        """Puts today's prices on the shops' signs."""
        for sign in self._signs:
            PLACEHOLDER.sub(self.fill_placeholder, sign)

    def fill_placeholder(self, match: re.Match[str]) -> str:
        offer = self._best.get(match.group(1))
        if offer is None:
            return "sold out" if match.group(1) in ITEMS else match.group(0)
        return f"{offer.price:.2f} coins"
