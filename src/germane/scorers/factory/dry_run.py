"""A judge and an embedder that estimate the usage of their requests without sending them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from germane.exchange import Message
from germane.scorers.base.protocols import DEFAULT_JUDGE_OPTIONS, JudgeOptions, Reply, Scorer, Vectors
from germane.scorers.base.schema_instance import schema_instance
from germane.scorers.factory.scorer_set import ScorerFactory
from germane.scorers.judge.embedders import EmbeddingBatcher
from germane.scorers.judge.rate_limit import BYTES_PER_TOKEN, estimate_tokens
from germane.settings import Settings

OUTPUT_TOKEN_FACTOR, EXTRA_OUTPUT_TOKENS = 2, 20
"""Assumed size of a reply: the tokens of the minimal reply times this factor, plus the extra tokens."""
_RATING = "5"
_QUESTION_LIST = re.compile(r"<questions-(\w+)>\n(.*?)\n</questions-\1>", re.DOTALL)
"""A numbered list with one question per line. The judge's reply has one item per question."""
_DIMENSIONS = 8


@dataclass(slots=True)
class RequestEstimate:
    """Estimated usage by the judge and the embedder."""

    requests: int = 0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    embedded_tokens: float = 0.0

    def since(self, earlier: RequestEstimate) -> RequestEstimate:
        """Return the difference from an earlier estimate."""
        return RequestEstimate(*(getattr(self, name) - getattr(earlier, name) for name in self.__slots__))


class DryRunJudge:
    """Replies with the minimal value that the schema allows; without one, with a question or a rating."""

    def __init__(self, model: str, estimate: RequestEstimate) -> None:
        self.model = model
        self.estimate = estimate

    async def identify(self) -> str:
        """Return the model name.

        This is not counted, because a real judge is identified once rather than for every exchange.
        """
        return self.model

    async def ask(self, messages: Sequence[Message], **given: Unpack[JudgeOptions]) -> Reply:
        """Count the request, and return a reply with all ``n`` choices."""
        options: JudgeOptions = {**DEFAULT_JUDGE_OPTIONS, **given}
        n, schema, top_tokens = options["n"], options["schema"], options["top_tokens"]
        question_list = _QUESTION_LIST.search(messages[-1].content)
        items = len(question_list[2].splitlines()) if question_list else 1
        if schema is not None:
            texts = [
                json.dumps(schema_instance(schema, items=items, number=number, text=_question))
                for number in range(1, n + 1)
            ]
        else:
            texts = [_RATING if top_tokens else _question(number) for number in range(1, n + 1)]
        self.estimate.requests += 1
        self.estimate.input_tokens += estimate_tokens(messages)
        self.estimate.output_tokens += sum(min(estimate_output_tokens(text), options["max_tokens"]) for text in texts)
        return Reply(tuple(texts), model=self.model, first_token={_RATING: 1.0} if top_tokens else {})


class DryRunEmbedder:
    """Returns the same vector for every text."""

    def __init__(self, model: str, estimate: RequestEstimate) -> None:
        self.model = model
        self.estimate = estimate

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Count the tokens of the texts, and return one vector per text."""
        self.estimate.embedded_tokens += sum(len(text.encode("utf-8", "replace")) for text in texts) / BYTES_PER_TOKEN
        return np.tile(np.eye(1, _DIMENSIONS), (len(texts), 1))


def build_dry_run_scorer(name: str, settings: Settings, *, judge: str, embedder: str) -> tuple[Scorer, RequestEstimate]:
    """Build a built-in scorer that sends no requests, and return it with the estimate that its requests are added to.

    Raises:
        SettingsError: the scorer is unknown, or its options are invalid.
    """
    estimate, factory = RequestEstimate(), ScorerFactory(settings)
    factory.judge = DryRunJudge(judge, estimate)
    factory.embedder = EmbeddingBatcher(DryRunEmbedder(embedder, estimate), gather_seconds=0.0, cache_size=0)
    return factory.get_scorer(name), estimate


def estimate_output_tokens(minimal_reply: str) -> float:
    """Return the assumed number of output tokens for a request, based on its minimal reply."""
    return OUTPUT_TOKEN_FACTOR * estimate_tokens([Message("assistant", minimal_reply)]) + EXTRA_OUTPUT_TOKENS


def _question(number: int) -> str:
    return f"What is detail {number} like?"
