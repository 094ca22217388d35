"""The contexts of an exchange as a prompt shows them: the first ones, each between marks of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from germane.exchange import Exchange
from germane.scorers.material import Material
from germane.scorers.ranking import MOST_CHUNKS
from germane.scorers.text import is_blank

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
