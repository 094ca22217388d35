"""The share of the answer's words that occur in the contexts, computed without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Self

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason, band_of
from germane.scorers.base.fingerprint import fingerprint, fingerprint_name
from germane.scorers.base.protocols import ScorerModels
from germane.scorers.base.text import shorten, split_words, strip_control_characters

VERSION = "1"
MAX_WORDS_SHOWN = 20
"""Maximum number of missing words to include in the details."""
MAX_INLINE_CHARACTERS = 50_000
"""Maximum length of texts to process on the event loop. Longer ones are processed in a thread."""


class ContextCoverage:
    """Share of the answer's distinct words that occur in the contexts, from 0 to 1.

    It is free, works in every language, and is hard to beat as a measure of faithfulness. It does not understand text:
    a contradiction in the words of the contexts scores high, and a correct paraphrase scores low. Noncommittal answers
    are scored like any other answer.

    Source: defined by germane.
    """

    name = "context_coverage"
    requires = frozenset({"answer", "contexts"})
    range = (0.0, 1.0)

    @classmethod
    def build(cls, models: ScorerModels, options: Mapping[str, Any]) -> Self:  # noqa: ARG003 - most scorers use it
        """Build the scorer from the settings."""
        return cls(**options)

    def __repr__(self) -> str:
        return "ContextCoverage()"

    @property
    def fingerprint(self) -> str:
        """The scorer's fingerprint. It covers the version, because the scorer has no options."""
        return fingerprint(scorer=fingerprint_name(self), version=VERSION, parameters={})

    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange. ``details`` contains the word counts and up to 20 missing words.

        Raises:
            ScoringError: the answer has no words; the reason is ``missing_input``.
        """
        answer, contexts = exchange.answer or "", [context.text for context in exchange.contexts]
        if len(answer) + sum(map(len, contexts)) <= MAX_INLINE_CHARACTERS:
            total, missing = _compare_words(answer, contexts)
        else:
            total, missing = await asyncio.to_thread(_compare_words, answer, contexts)
        if not total:
            raise ScoringError(UnscoredReason.MISSING_INPUT, "the answer has no words")
        value = (total - len(missing)) / total
        return Score(
            scorer=self.name,
            fingerprint=self.fingerprint,
            value=value,
            label=band_of(value),
            details={
                "words": total,
                "found": total - len(missing),
                "not_found": [shorten(word, 50) for word in missing[:MAX_WORDS_SHOWN]],
            },
        )


def _compare_words(answer: str, contexts: Iterable[str]) -> tuple[int, list[str]]:
    """Return the number of distinct words in the answer, and the words that do not occur in any context."""
    answer_words = dict.fromkeys(split_words(strip_control_characters(answer)))
    context_words = {word for context in contexts for word in split_words(strip_control_characters(context))}
    return len(answer_words), [word for word in answer_words if word not in context_words]
