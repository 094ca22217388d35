"""What models cost: the user's prices first, then a table of list prices, with its date, in ``prices.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

from germane.scorers.base.protocols import Reply
from germane.settings import LOCAL, Price

MILLION = 1_000_000
FREE = Price(input=0.0, output=0.0)
"""Of models that run in this process."""
_VERSION = re.compile(r"[-@:](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|\d{3}|latest)")
"""How vendors mark a version behind a model's name."""


class Prices:
    """Finds a model's price under its name, or under the longest name that it continues with a version or a date."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        self._own = dict(own or {})

    def of(self, configured: str, served: str | None = None) -> Price | None:
        """Return the price of a model, or None where it is not known.

        Args:
            configured: The model's name in the settings.
            served: Its name as its server gives it, where that is known. A server may call its model as it likes, so
                the table is asked for this one alone; your own prices are for either.
        """
        own = next((price for name in (served, configured) if name and (price := _find(self._own, name))), None)
        if own is not None:
            return own
        return FREE if configured.startswith(f"{LOCAL}:") else _find(_table(), served or configured)

    def cost(
        self, configured: str, served: str | None, input_tokens: int | None, output_tokens: int | None
    ) -> float | None:
        """Return the US dollars that a request cost; None where price or tokens are not known."""
        price = self.of(configured, served)
        if price is None or input_tokens is None or output_tokens is None:
            return None
        return (price.input * input_tokens + price.output * output_tokens) / MILLION


def table_date() -> date:
    """Return the day on which the table's prices were looked up."""
    return date.fromisoformat(str(_content()["as_of"]))


def _find(prices: Mapping[str, Price], model: str) -> Price | None:
    fitting = [name for name in prices if model == name or _continues(model, name)]
    return prices[max(fitting, key=len)] if fitting else None


def _continues(model: str, name: str) -> bool:
    return model.startswith(name) and _VERSION.fullmatch(model, len(name)) is not None


@cache
def _table() -> Mapping[str, Price]:
    return {
        name: Price(input=pair[0], output=pair[1])
        for vendor in _content()["models"].values()
        for name, pair in vendor.items()
    }


@cache
def _content() -> dict[str, Any]:
    return tomllib.loads((files("germane.scorers.judge") / "prices.toml").read_text(encoding="utf-8"))


@dataclass
class Meter:
    """What the judge and the embedder of one process took so far. What a server does not tell counts as nothing."""

    requests: int = 0
    """Asked of the judge, those without a reply included. A request that was shared is one."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """US dollars, as far as prices are known."""
    embedding_requests: int = 0
    """Asked of the embedder; one holds the texts of many exchanges."""
    embedding_tokens: int = 0

    def count(self, reply: Reply) -> None:
        """Add what a reply of the judge took."""
        self.input_tokens += reply.input_tokens or 0
        self.output_tokens += reply.output_tokens or 0
        self.cost += reply.cost or 0.0
