"""What a page is about where nobody has chosen: the scorer, the service, and how they are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, Protocol

from germane.insights.text import plain

RELEVANCY: Final = "answer_relevancy"
SIMILARITY: Final = "question_answer_similarity"
FAITHFULNESS: Final = "faithfulness"


class Summed(Protocol):
    """A group of scores."""

    @property
    def n(self) -> int: ...
    @property
    def service(self) -> str: ...
    @property
    def scorer(self) -> str: ...


def scorer_on_show(summaries: Iterable[Summed], asked: str | None = None) -> str | None:
    """Return whose scores are shown: the asked one, else relevancy, similarity, or whichever has most.

    Args:
        summaries: Of the window.
        asked: As the address has it.

    Returns:
        Its name; None where nothing is scored and nobody has asked.
    """
    counts = _counted((one.scorer, one.n) for one in summaries)
    usual = next((name for name in (RELEVANCY, SIMILARITY) if counts[name]), None)
    return asked or usual or _most(counts)


def known(asked: str | None, names: Iterable[str]) -> str | None:
    """Return what is asked for where it is one of the names; an address may ask for what is not there."""
    return asked if asked in set(names) else None


def second_scorer(summaries: Iterable[Summed], first: str | None) -> str | None:
    """Return whose scores are shown beside the first one's: faithfulness, else whichever has most."""
    counts = _counted((one.scorer, one.n) for one in summaries if one.scorer != first)
    return FAITHFULNESS if counts[FAITHFULNESS] else _most(counts)


def service_on_show(summaries: Iterable[Summed], asked: str | None = None) -> str | None:
    """Return the asked service, else the one with most scores; None where there is none."""
    return asked or _most(_counted((one.service, one.n) for one in summaries))


def called(scorer: str | None) -> str:
    """Return what a scorer's mean is called: "Relevancy", "Faithfulness", and others by their names."""
    return {None: "Relevancy", RELEVANCY: "Relevancy", SIMILARITY: "Similarity"}.get(scorer) or plain(scorer or "")


def _counted(pairs: Iterable[tuple[str, int]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name, count in pairs:
        counts[name] += count
    return counts


def _most(counts: Counter[str]) -> str | None:
    """Return the name with the most; of equals the first by name."""
    return min((name for name in counts if counts[name]), key=lambda name: (-counts[name], name), default=None)
