"""A judge and an embedder that send nothing, and count what they would have sent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from germane.scorers.base.protocols import Message, Reply, Scorer, Vectors
from germane.scorers.factory.factory import Maker
from germane.scorers.judge.embedding_batcher import Batcher
from germane.scorers.judge.rate_limit import BYTES_PER_TOKEN, tokens_in
from germane.settings import Settings

TIMES_LEAST, MORE_TOKENS = 2, 20
"""What a judge is assumed to write for one text asked for: so many times the least reply, and so many tokens more."""
_RATING = "5"
_COMPARED = re.compile(r"<questions-(\w+)>\n(.*?)\n</questions-\1>", re.DOTALL)
"""Numbered questions, a line each, of which the judge says something one by one."""
_DIMENSIONS = 8


@dataclass(slots=True)
class Measured:
    """What would have been sent."""

    requests: int = 0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    """As assumed."""
    embedded_tokens: float = 0.0

    def minus(self, other: Measured) -> Measured:
        """Return what came since the other."""
        return Measured(*(getattr(self, name) - getattr(other, name) for name in self.__slots__))


class MeasuringJudge:
    """Gives the least reply that a schema takes; to a request without one a question, or a rating."""

    def __init__(self, model: str, measured: Measured) -> None:
        self.model = model
        self.measured = measured

    async def identify(self) -> str:
        """Return the model's name; a server is asked for it once, not for every exchange."""
        return self.model

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        n: int = 1,
        temperature: float = 0.0,  # noqa: ARG002 - the protocol's
        max_tokens: int = 512,
        stop: Sequence[str] = (),  # noqa: ARG002
        schema: Mapping[str, Any] | None = None,
        top_tokens: int = 0,
    ) -> Reply:
        """Count the request, and make up a reply with all ``n`` choices."""
        self.measured.requests += 1
        self.measured.input_tokens += tokens_in(messages)
        items = _compared_in(messages[-1].text)
        texts = tuple(_reply(schema, place, items, rating=top_tokens > 0) for place in range(1, n + 1))
        self.measured.output_tokens += sum(min(assumed_output(text), max_tokens) for text in texts)
        return Reply(texts, model=self.model, first_token={_RATING: 1.0} if top_tokens else {})


class MeasuringEmbedder:
    """Gives every text the same vector."""

    def __init__(self, model: str, measured: Measured) -> None:
        self.model = model
        self.measured = measured

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Count the texts."""
        self.measured.embedded_tokens += sum(len(text.encode("utf-8", "replace")) for text in texts) / BYTES_PER_TOKEN
        return np.tile(np.eye(1, _DIMENSIONS), (len(texts), 1))


def measuring(name: str, settings: Settings, *, judge: str, embedder: str) -> tuple[Scorer, Measured]:
    """Return one of germane's scorers with judge and embedder of these names, and what they count.

    Raises:
        SettingsError: there is no such scorer, or its options are wrong.
    """
    measured, maker = Measured(), Maker(settings)
    maker.judge = MeasuringJudge(judge, measured)
    maker.embedder = Batcher(MeasuringEmbedder(embedder, measured), wait=0.0, remember=0)
    return maker.scorer(name), measured


def assumed_output(reply: str) -> float:
    """Return how many tokens a judge is assumed to write whose least reply this is."""
    return TIMES_LEAST * tokens_in([Message("assistant", reply)]) + MORE_TOKENS


def _compared_in(text: str) -> int:
    found = _COMPARED.search(text)
    return len(found[2].splitlines()) if found else 1


def _reply(schema: Mapping[str, Any] | None, place: int, items: int, *, rating: bool) -> str:
    if schema is not None:
        return json.dumps(least(schema, place, items=items))
    return _RATING if rating else _text(place)


def _text(place: int) -> str:
    return f"What is point {place} about?"


def least(schema: Mapping[str, Any], place: int = 1, *, items: int = 1) -> Any:
    """Return the least value that a JSON schema takes: lists have so many items if they may; numbers count them."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: least(part, place, items=items) for name, part in schema.get("properties", {}).items()}
        case "array":
            count = min(max(items, schema.get("minItems", 0)), schema.get("maxItems", 1_000))
            return [least(schema["items"], number, items=items) for number in range(1, count + 1)]
        case "integer" | "number":
            return schema.get("minimum", place)
        case "boolean":
            return False
        case _:
            return _text(place)
