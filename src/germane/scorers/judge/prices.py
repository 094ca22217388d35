"""Model prices, from the user's settings or the dated price list in ``prices.toml``, and usage metering."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files

from germane.scorers.base.protocols import Reply
from germane.settings import LOCAL, Price

MILLION = 1_000_000
FREE_PRICE = Price(input=0.0, output=0.0)
"""The price of models that run locally."""
_VERSION = re.compile(r"[-@:](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|\d{3}|latest)")
"""A version suffix that vendors add to a model name."""


class PriceList:
    """Prices by model name. A name with a version or date suffix has the same price as the name without it."""

    def __init__(self, user_prices: Mapping[str, Price] | None = None) -> None:
        self._user_prices = dict(user_prices or {})

    def find_price(self, configured: str, served: str | None = None) -> Price | None:
        """Return a model's price, or None if it is unknown.

        Args:
            configured: The model name in the settings.
            served: The model name that the server reports, if known. User prices apply to both names. If it is known,
                the built-in list is searched only for this name, because a server can use any alias for any model.
        """
        for name in (served, configured):
            if name and (price := _find(self._user_prices, name)):
                return price
        return FREE_PRICE if configured.startswith(f"{LOCAL}:") else _find(_load_price_list()[1], served or configured)

    def request_cost(
        self, configured: str, served: str | None, input_tokens: float | None, output_tokens: float | None
    ) -> float | None:
        """Return the cost of a request in US dollars; None if the price or the token counts are unknown."""
        price = self.find_price(configured, served)
        if price is None or input_tokens is None or output_tokens is None:
            return None
        return (price.input * input_tokens + price.output * output_tokens) / MILLION


@dataclass
class UsageMeter:
    """The usage of the judge and the embedder in one process. Usage that a server does not report is not included."""

    requests: int = 0
    """Judge requests, including failed ones. A coalesced request counts once."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """Cost in US dollars of the requests with a known price."""
    embedding_requests: int = 0
    """Embedder requests. One request can contain the texts of many exchanges."""
    embedding_tokens: int = 0

    def record_reply(self, reply: Reply) -> None:
        """Add the tokens and the cost of a judge's reply."""
        self.input_tokens += reply.input_tokens or 0
        self.output_tokens += reply.output_tokens or 0
        self.cost += reply.cost or 0.0


def price_list_date() -> date:
    """Return the date on which the prices in the built-in list were looked up."""
    return _load_price_list()[0]


def _find(prices: Mapping[str, Price], model: str) -> Price | None:
    """Return the price of the longest name that equals the model name, apart from a version suffix; None if none
    does.
    """
    matching = [
        name for name in prices if model.startswith(name) and (model == name or _VERSION.fullmatch(model, len(name)))
    ]
    return prices[max(matching, key=len)] if matching else None


@cache
def _load_price_list() -> tuple[date, Mapping[str, Price]]:
    """Return the date and the prices of the built-in list."""
    content = tomllib.loads((files("germane.scorers.judge") / "prices.toml").read_text(encoding="utf-8"))
    prices = {
        name: Price(input=pair[0], output=pair[1])
        for vendor in content["models"].values()
        for name, pair in vendor.items()
    }
    return date.fromisoformat(str(content["as_of"])), prices
