"""A mean corrected by proxies, where that makes it surer and nothing speaks against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Final

from germane.score import Reason
from germane.storage.estimate import Estimate, Sums, estimate
from germane.storage.regression import LEAST, ProxySums, ScoreSums, sharpened

TOLERANCE: Final = 0.01
"""Share of what was seen that may have been left out for what it was: the proxies are those of all exchanges."""
SAME: Final = 0.1
"""How far what was seen and what the proxies stand for may lie apart."""
LUCK: Final = frozenset({Reason.NOT_DRAWN, Reason.BUDGET, Reason.QUEUE_FULL, Reason.CAPTURE_LIMIT, Reason.EXPIRED})
"""Why an exchange is not scored whatever it is like."""
_LEFT_OUT: Final = frozenset({"skipped", "failed"})
_OF_SCORES: Final = tuple(one.name for one in fields(ScoreSums))
_PLAIN: Final = tuple(one.name for one in fields(Sums))


def estimated(
    sums: Mapping[str, float], proxies: Mapping[str, float] | None, outcomes: Mapping[tuple[str, str], int]
) -> Estimate:
    """Return the estimate of a group of scores, all of one fingerprint.

    Args:
        sums: Over its scores.
        proxies: Over the proxies of all exchanges of the same window and group; None where they are not comparable.
        outcomes: What became of these exchanges by outcome and reason.
    """
    of_scores = Sums(**{name: sums[name] for name in _PLAIN})  # type: ignore[arg-type]  # counts are whole
    plain = estimate(of_scores)
    if proxies is None or plain.interval is None or sums["n_x"] < LEAST or not _is_fair(proxies, outcomes):
        return plain
    found = sharpened(
        of_scores,
        ScoreSums(**{name: sums[name] for name in _OF_SCORES}),  # type: ignore[arg-type]  # likewise
        ProxySums(**proxies),  # type: ignore[arg-type]  # likewise
    )
    if found is None:
        return plain
    return replace(plain, mean=found.mean, interval=found.interval, correlation=found.correlation)


def _is_fair(proxies: Mapping[str, float], outcomes: Mapping[tuple[str, str], int]) -> bool:
    """Whether the proxies are of the very exchanges that the scorer was to score: a filter may leave some out."""
    seen = for_what_it_was = 0
    for (outcome, reason), count in outcomes.items():
        if outcome == "seen":
            seen += count
        elif outcome in _LEFT_OUT and reason not in LUCK:
            for_what_it_was += count
    lost = outcomes.get(("skipped", Reason.QUEUE_FULL.value), 0)
    same = abs(proxies["v"] - (seen - lost)) <= SAME * seen
    return same and for_what_it_was <= TOLERANCE * seen
