"""The verdict on two sides of a comparison: one sentence that states whether the new side is worse or better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from germane import sanitize
from germane.insights.formatting import format_interval, format_number, format_signed, scorer_title
from germane.insights.situation import Piece, describe_mean, find_rises, more_routes, route_or_service, strong
from germane.storage import MIN_SAMPLES, AnswerFilter, Comparison, Comparisons, TimeWindow

ComparisonState = Literal["worse", "better", "unclear", "judge_changed", "few", "empty"]
_TONES: Final = {"worse": "bad", "better": "good"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One side of a comparison."""

    name: str
    """Such as "prompt version 7", or "13 Nov 09:00 to 20 Nov 09:00"."""
    phrase: str
    """The name in a sentence, such as "with prompt version 7", or "from 13 Nov 09:00 to 20 Nov 09:00"."""
    window: TimeWindow
    condition: Mapping[str, str] = field(default_factory=dict)
    """The prompt version or model that selects the answers of this side. Empty for a period."""
    newest: datetime | None = None
    """Time of the newest scored answer, or None without scores."""

    def filter(self, *, scorer: str, service: str | None, route: str | None, fingerprint: str) -> AnswerFilter:
        """Return the filter that selects the scores of this side."""
        return AnswerFilter(
            since=self.window[0],
            until=self.window[1],
            scorer=scorer,
            service=service,
            route=route,
            fingerprint=fingerprint,
            model=self.condition.get("model"),
            prompt_version=self.condition.get("prompt_version"),
        )


@dataclass(frozen=True, slots=True)
class ComparisonVerdict:
    """A verdict in one sentence, split into pieces."""

    state: ComparisonState
    pieces: tuple[Piece, ...]
    route: str | None = None
    """The route that moved most, if the sentence names one."""

    @property
    def tone(self) -> str:
        """Color of the verdict: ``bad``, ``good`` or empty."""
        return _TONES.get(self.state, "")


def build_comparison_verdict(
    comparisons: Comparisons, whole: Comparison | None, sides: Sequence[ComparedSide], scorer: str, min_drop: float
) -> ComparisonVerdict:
    """Return the verdict on two sides that both have scores.

    Args:
        comparisons: The comparisons of the routes and the service, for one scorer and fingerprint.
        whole: The comparison of the service or, if only one route is compared, of that route.
        sides: The old and the new side.
        scorer: Name of the scorer.
        min_drop: Smaller differences are not reported.
    """
    old, new = sides
    worse = [line for line in comparisons.dropped if -(line.difference or 0.0) >= min_drop]
    better = [line for line in find_rises(comparisons) if (line.difference or 0.0) >= min_drop]
    if worse:
        return ComparisonVerdict("worse", _moved(scorer, sides, "worse", worse, "better", better), _first(worse).route)
    if better:
        return ComparisonVerdict(
            "better", _moved(scorer, sides, "better", better, "worse", worse), _first(better).route
        )
    if comparisons.is_comparable:
        is_small = any(line.finding in {"dropped", "higher"} for line in (*comparisons.services, *comparisons.routes))
        size = f"of {format_number(min_drop)} or more " if is_small else ""
        text = f" between {old.name} and {new.name}"
        if whole is not None and whole.before is not None and whole.after is not None and whole.is_comparable:
            text += f": {describe_mean(whole.before)} and {describe_mean(whole.after)}; {_difference(whole)}"
        small = sum(not line.is_comparable for line in comparisons.routes)
        if small:
            text += f"; {small} of {len(comparisons.routes)} routes have too few scores to compare"
        return ComparisonVerdict("unclear", (strong(f"No difference {size}shown"), Piece(f"{text}.")))
    if any(line.finding == "judge_changed" for line in comparisons.routes):
        changed = strong("The judge changed, so the two sides cannot be compared.")
        return ComparisonVerdict("judge_changed", (changed, Piece(" No fingerprint has enough scores on both sides.")))
    estimates = ([line.before for line in comparisons.routes], [line.after for line in comparisons.routes])
    counts = [sum(estimate.n for estimate in of_side if estimate is not None) for of_side in estimates]
    text = (
        f" to compare: n={counts[0]:,} {old.phrase} and n={counts[1]:,} {new.phrase}, need {MIN_SAMPLES} on each side"
    )
    spread = " of a route" if len(comparisons.routes) > 1 else ""
    return ComparisonVerdict("few", (strong("Not enough data"), Piece(f"{text}{spread}.")))


def _moved(
    scorer: str,
    sides: Sequence[ComparedSide],
    word: str,
    lines: Sequence[Comparison],
    other_word: str,
    others: Sequence[Comparison],
) -> tuple[Piece, ...]:
    """Return the sentence for a comparison with a difference: "Relevancy is worse with ... than with ...".

    As on the overview, a route that moved is named before the service as a whole.
    """
    first = _first(lines)
    assert first.before is not None  # noqa: S101 - the line is comparable
    assert first.after is not None  # noqa: S101
    means = f"{describe_mean(first.after)}, compared with {describe_mean(first.before)}; {_difference(first)}"
    more = sum(line.route is not None for line in lines) - 1
    against = sum(line.route is not None for line in others)
    old, new = sides
    ends = f"; also on {more_routes(more)}" if more > 0 else ""
    ends += f"; {other_word} on {sanitize.count_noun(against, 'route')}" if against else ""
    return (
        strong(f"{scorer_title(scorer)} is {word}"),
        Piece(f" {new.phrase} than {old.phrase} on "),
        route_or_service(first.route),
        Piece(f": {means}{ends}."),
    )


def _first(lines: Sequence[Comparison]) -> Comparison:
    """Return the comparison that the sentence names: the route with the largest change, or else the service."""
    return min(lines, key=lambda line: (line.route is None, -abs(line.difference or 0.0), line.route or ""))


def _difference(line: Comparison) -> str:
    return f"difference {format_signed(line.difference)}, 95% interval {format_interval(line.interval)}"
