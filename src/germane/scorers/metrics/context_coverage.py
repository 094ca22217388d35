"""How many of the answer's words stand in the contexts? No model, no request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import Reason, Score, band
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.text import clean, shorten, words

VERSION = "1"
SHOWN = 20
"""Words that were not found and are kept for whoever looks."""
AT_ONCE = 50_000
"""Characters that are looked at on the event loop; more take a thread, or all else would wait for them."""


class ContextCoverage:
    """Share of the answer's distinct words that stand in the contexts, from 0 to 1.

    It costs nothing, works in every language, and is hard to beat where faithfulness is measured. It does not
    understand: a contradiction made of the contexts' own words scores high, a true paraphrase low, and an answer that
    does not commit itself is scored like any other.

    Source: the form is ours.
    """

    name = "context_coverage"
    requires = frozenset({"answer", "contexts"})
    range = (0.0, 1.0)

    def __repr__(self) -> str:
        return "ContextCoverage()"

    @property
    def fingerprint(self) -> str:
        """Of its version: there is nothing to configure."""
        return fingerprint(scorer=self.name, version=VERSION, parameters={})

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` tells how many words were found, and some that were not.

        Raises:
            ScoringError: ``missing_input``; there is no word in the answer.
        """
        answer, contexts = exchange.answer or "", [context.text for context in exchange.contexts]
        if len(answer) + sum(map(len, contexts)) <= AT_ONCE:
            wanted, absent = _looked_up(answer, contexts)
        else:
            wanted, absent = await asyncio.to_thread(_looked_up, answer, contexts)
        if not wanted:
            raise ScoringError(Reason.MISSING_INPUT, "there is no word in the answer")
        value = (wanted - len(absent)) / wanted
        return Score(
            scorer=self.name,
            fingerprint=self.fingerprint,
            value=value,
            label=band(value),
            details={
                "words": wanted,
                "found": wanted - len(absent),
                "not_found": [shorten(word, 50) for word in absent[:SHOWN]],
            },
        )


def _looked_up(answer: str, contexts: Iterable[str]) -> tuple[int, list[str]]:
    """Return how many words the answer has, and those that stand in no context."""
    wanted = dict.fromkeys(words(clean(answer)))
    there = {word for context in contexts for word in words(clean(context))}
    return len(wanted), [word for word in wanted if word not in there]
