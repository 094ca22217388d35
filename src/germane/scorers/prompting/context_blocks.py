"""The contexts of an exchange as a prompt shows them: the first ones, each between marks of its own."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from germane.exchange import Exchange
from germane.scorers.base.text import is_blank
from germane.scorers.prompting.inputs import Material

DECAY = 0.9
"""What each next position counts for, beside the one before it."""
MOST_CHUNKS = 20
"""Chunks of an exchange that are looked at, the first ones."""

Aggregate = Literal["position_weighted", "mean"]


def position_weighted_mean(values: Sequence[float], *, decay: float = DECAY) -> float:
    """Return sum(value * decay ** position) / sum(decay ** position), the first position being 0.

    ``values`` must not be empty. With decay .9 the values .9, .8, .3 and .2 give .584.
    """
    weights = [decay**position for position in range(len(values))]
    return math.fsum(value * weight for value, weight in zip(values, weights, strict=True)) / math.fsum(weights)


def mean(values: Sequence[float]) -> float:
    """Return the plain mean of one value or more."""
    return math.fsum(values) / len(values)


def checked_aggregate(aggregate: Aggregate) -> Aggregate:
    """Return the name of the mean that is to be the score's value.

    Raises:
        ValueError: there is none of that name.
    """
    if aggregate not in get_args(Aggregate):
        raise ValueError(f"aggregate must be one of {', '.join(get_args(Aggregate))}, not {aggregate!r}")
    return aggregate


def means(values: Sequence[float]) -> dict[str, float]:
    """Return both means, by the names under which they can be chosen."""
    return {"position_weighted": position_weighted_mean(values), "mean": mean(values)}


Cuts = Mapping[str, Mapping[str, int]]
"""How much was shown, and of how much, by name."""


def with_first_contexts(exchange: Exchange) -> tuple[Exchange, Cuts]:
    """Return the exchange with its first contexts that hold anything, and what that left out."""
    contexts = tuple(context for context in exchange.contexts if not is_blank(context.text))
    first = contexts[:MOST_CHUNKS]
    return dataclasses.replace(exchange, contexts=first), cuts("contexts", len(first), len(contexts))


def cuts(name: str, shown: int, of: int) -> Cuts:
    """Return what was left out under that name; nothing where all was shown."""
    return {name: {"shown": shown, "of": of}} if shown < of else {}


def cut_details(material: Material, *more: Cuts) -> dict[str, object]:
    """Return what a score's details must say of how its texts were changed, and of what was left out besides."""
    left_out = {name: dict(sizes) for each in (*more, material.cut) for name, sizes in each.items()}
    return {**material.details(), "cut": left_out} if left_out else material.details()


def fenced(texts: Sequence[str], name: str, fence: str, *, title: str = "") -> str:
    """Return the texts between marks of that name and fence; with ``title`` each is numbered: "Passage 1:"."""
    heads = (f"{title} {place}:\n" if title else "" for place in range(1, len(texts) + 1))
    blocks = (f"<{name}-{fence}>\n{text}\n</{name}-{fence}>" for text in texts)
    return "\n\n".join(head + block for head, block in zip(heads, blocks, strict=True))


def numbered(texts: Sequence[str]) -> str:
    """Return the texts as a numbered list, a line each."""
    return "\n".join(f"{place}. {' '.join(text.split())}" for place, text in enumerate(texts, 1))
