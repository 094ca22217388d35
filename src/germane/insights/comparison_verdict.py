"""The verdict on two sides of a comparison: whether the new side is worse or better. Only facts; see ``wording``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, get_args

from germane.insights.situation import find_rises
from germane.statistics import Comparison, Comparisons, TimeWindow
from germane.storage import AnswerFilter

ComparedBy = Literal["period", "prompt_version", "model"]
COMPARED_BY: Final[Mapping[ComparedBy, str]] = dict(
    zip(get_args(ComparedBy), ("period", "prompt version", "model"), strict=True)
)
"""What the two sides of a comparison can differ in, by its name in the URL."""
ComparisonState = Literal[
    "worse", "better", "unclear", "judge_changed", "few", "one_version", "no_version", "no_scores", "empty"
]
"""``few``: not enough data. ``one_version``, ``no_version``: the window has too few prompt versions or models.
``no_scores``: a side has none. ``empty``: the window has none."""
_TONES: Final = {"worse": "bad", "better": "good"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One side of a comparison."""

    name: str
    """Such as "prompt version 7", or "13 Nov 09:00 to 20 Nov 09:00"."""
    window: TimeWindow
    condition: Mapping[str, str] = field(default_factory=dict)
    """The prompt version or model that selects the answers of this side. Empty for a period."""
    newest: datetime | None = None
    """Time of the newest scored answer, or None without scores."""

    @property
    def phrase(self) -> str:
        """The name in a sentence, such as "with prompt version 7", or "from 13 Nov 09:00 to 20 Nov 09:00"."""
        return f"with {self.name}" if self.condition else f"from {self.name}"

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonVerdict:
    """What a verdict states about two sides."""

    state: ComparisonState
    scorer: str | None = None
    by: ComparedBy = "period"
    sides: tuple[ComparedSide, ...] = ()
    """The old and the new side, or the sides without scores in the state ``no_scores``."""
    routes: Sequence[Comparison] = ()
    """The comparisons of the routes, for one scorer and fingerprint."""
    services: Sequence[Comparison] = ()
    """The comparison of the service, if at least two routes are comparable."""
    min_drop: float = 0.0
    """Smaller differences are not reported."""
    worse: tuple[Comparison, ...] = ()
    """Routes before the service, and those with the largest difference first."""
    better: tuple[Comparison, ...] = ()

    @property
    def first(self) -> Comparison | None:
        """The comparison that the verdict names. As on the overview, a route is named before the service."""
        return next(iter(self.worse or self.better), None)

    @property
    def route(self) -> str | None:
        """The route that moved most, if the verdict names one."""
        return None if self.first is None else self.first.route

    @property
    def whole(self) -> Comparison | None:
        """The comparison of the service or, if only one route is compared, of that route."""
        comparable = [line for line in self.routes if line.is_comparable]
        lines = self.services or (comparable if len(comparable) == 1 else self.routes)
        return lines[0] if self.services or len(lines) == 1 else None

    @property
    def small_routes(self) -> int:
        """Number of routes with too few scores on one of the sides."""
        return sum(not line.is_comparable for line in self.routes)

    @property
    def has_small_difference(self) -> bool:
        """Whether a significant difference is not reported because it is below ``min_drop``."""
        return any(line.finding in {"dropped", "higher"} for line in (*self.services, *self.routes))

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of scores on the old and the new side."""
        sides = [[line.before for line in self.routes], [line.after for line in self.routes]]
        old, new = (sum(estimate.n for estimate in side if estimate is not None) for side in sides)
        return old, new

    @property
    def tone(self) -> str:
        """Color of the verdict: ``bad``, ``good`` or empty."""
        return _TONES.get(self.state, "")


def build_comparison_verdict(
    comparisons: Comparisons, sides: Sequence[ComparedSide], scorer: str, min_drop: float
) -> ComparisonVerdict:
    """Return the verdict on two sides that both have scores.

    The comparisons are for one scorer and fingerprint. Differences smaller than ``min_drop`` are not reported.
    """

    def largest_first(lines: Iterable[Comparison], sign: int) -> tuple[Comparison, ...]:
        reported = [line for line in lines if sign * (line.difference or 0.0) >= min_drop]
        reported.sort(key=lambda line: (line.route is None, -abs(line.difference or 0.0), line.route or ""))
        return tuple(reported)

    rises = find_rises([*comparisons.services, *comparisons.routes])
    worse, better = largest_first(comparisons.dropped, -1), largest_first(rises, 1)
    state: ComparisonState = "worse" if worse else "better" if better else "unclear"
    if state == "unclear" and not comparisons.is_comparable:
        is_judge_changed = any(line.finding == "judge_changed" for line in comparisons.routes)
        state = "judge_changed" if is_judge_changed else "few"
    return ComparisonVerdict(
        state=state,
        scorer=scorer,
        sides=tuple(sides),
        routes=comparisons.routes,
        services=comparisons.services,
        min_drop=min_drop,
        worse=worse,
        better=better,
    )
