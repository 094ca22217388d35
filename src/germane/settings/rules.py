"""Settings of rules: what people are told of. Some are in force without being configured."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag

from germane.alert import Severity
from germane.settings.kinds import Names
from germane.settings.parts import DAY

HOUR: Final = 3600
RELEVANCY: Final = "answer_relevancy"


Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^\P{Cc}+$")]
"""Stands in the database and in messages: no control characters."""


class Rule(BaseModel):
    """What all rules have."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True)

    name: Name
    """What its alerts are called; by default its kind."""
    enabled: bool = True
    """Whether it is in force: `false` switches off one that is on by default."""
    severity: Severity = "warning"
    """How bad it is: `warning` or `critical`."""
    scorer: str | None = None
    """Whose scores it looks at; by default each that scores online by itself."""
    routes: Names = ()
    """Patterns of routes, such as `support-*`; by default all."""
    pending: float = Field(default=0, ge=0, le=30 * DAY, validation_alias="for")
    """Seconds for which it must hold before anybody is told."""
    repeat_every: float = Field(default=DAY, ge=60, le=400 * DAY)
    """Seconds after which people are told again while it lasts and nobody has acknowledged it."""

    def takes(self, route: str) -> bool:
        """Whether it looks at a route."""
        return not self.routes or any(fnmatchcase(route, pattern) for pattern in self.routes)


class Drop(Rule):
    """A rule: alert when scores behave worse than their learned baseline, with a stated rate of false alarms."""

    kind: Literal["drop"] = "drop"
    name: Name = "drop"
    min_drop: float = Field(default=0.05, ge=0.001, lt=1)
    """The smallest drop of the mean that matters."""
    false_alarms_per_year: float = Field(default=1.0, gt=0, le=1000)
    """How often it may be wrong for a service and scorer in a year in which all is well."""
    critical_drop: float | None = Field(default=0.15, gt=0, le=1)
    """Once the mean has dropped by that much the alert is critical."""
    attributes: dict[str, str] = Field(default_factory=dict)
    """Patterns of attributes' values, by name: only answers that have all of them count. They have a baseline of their
    own, learned from the first of them on."""


class Windowed(Rule):
    """What rules over a window have."""

    scorer: str | None = RELEVANCY
    """Whose scores it looks at."""
    attributes: dict[str, str] = Field(default_factory=dict)
    """Patterns of attributes' values, by name: only answers that have all of them count."""
    window: float = Field(default=DAY, gt=0, le=400 * DAY)
    """Seconds of answers up to the newest scored one; as much longer as it takes to hold `min_count`."""
    min_count: int = Field(default=30, ge=2)
    """Fewer scores than this decide nothing."""
    recovery: float = Field(default=0.03, ge=0, le=1)
    """The alert is over once the value is so far on the good side of the threshold."""
    keep_firing: float = Field(default=6 * HOUR, ge=0, le=30 * DAY)
    """Seconds for which it must stay there."""


class Floor(Windowed):
    """A rule: alert when the mean of a route's scores over a window lies under a threshold, and not just by chance."""

    kind: Literal["floor"] = "floor"
    name: Name = "floor"
    threshold: float = Field(ge=-1, le=1)
    """It fires when the mean and the upper end of its one-sided 95 % interval are under this."""


class LowRate(Windowed):
    """A rule: alert when the share of low scores of a route over a window is above a threshold."""

    kind: Literal["low_rate"] = "low_rate"
    name: Name = "low_rate"
    threshold: float = Field(ge=0, lt=1)
    """It fires when the share and the lower end of its one-sided 95 % interval are above this."""


class NoncommittalRate(Windowed):
    """A rule: alert when the share of answers of a route that do not answer is above a threshold."""

    kind: Literal["noncommittal_rate"] = "noncommittal_rate"
    name: Name = "noncommittal_rate"
    threshold: float = Field(ge=0, lt=1)
    """It fires when the share and the lower end of its one-sided 95 % interval are above this."""


class NoData(Rule):
    """A rule: alert when answers come in and none is scored any more."""

    kind: Literal["no_data"] = "no_data"
    name: Name = "no_data"
    pending: float = Field(default=60, ge=0, le=30 * DAY, validation_alias="for")
    """Seconds for which none may have been scored once that is seen: after a restart, or a database that was away, what
    waits is scored by then."""
    at_least: float = Field(default=900, ge=1, le=30 * DAY)
    """Seconds for which no answer that was to be scored may have been, twice the usual gap if that is longer."""


class ScorerError(Rule):
    """A rule: alert when a scorer fails: its judge is away, rejects the key, or replies what nobody can read."""

    kind: Literal["scorer_error"] = "scorer_error"
    name: Name = "scorer_error"
    pending: float = Field(default=60, ge=0, le=30 * DAY, validation_alias="for")
    """Seconds for which it must fail before anybody is told."""
    threshold: float = Field(default=0.2, ge=0, lt=1)
    """It fires when the share of scores that failed is above this, and is over at half of it."""
    window: float = Field(default=HOUR, ge=60, le=30 * DAY)
    """Seconds of answers."""
    min_count: int = Field(default=20, ge=1)
    """Fewer answers than this that were tried decide nothing."""


class BudgetExhausted(Rule):
    """A rule: alert when the budget is spent, so that answers go unscored until there is room again."""

    kind: Literal["budget_exhausted"] = "budget_exhausted"
    name: Name = "budget_exhausted"
    pending: float = Field(default=900, ge=0, le=30 * DAY, validation_alias="for")
    """Seconds for which it must be spent before anybody is told."""


AnyRule = Drop | Floor | LowRate | NoncommittalRate | NoData | ScorerError | BudgetExhausted
BY_DEFAULT: Final[tuple[AnyRule, ...]] = (Drop(), NoData(), ScorerError(), BudgetExhausted())
KINDS: Final[dict[str, type[Rule]]] = {
    "drop": Drop,
    "floor": Floor,
    "low_rate": LowRate,
    "noncommittal_rate": NoncommittalRate,
    "no_data": NoData,
    "scorer_error": ScorerError,
    "budget_exhausted": BudgetExhausted,
}


def _kind_of(value: Any) -> str:
    """Return the kind that a rule is of: without one it is a floor."""
    found = value.get("kind", "floor") if isinstance(value, dict) else getattr(value, "kind", None)
    return found if isinstance(found, str) else "?"


def _told_apart(rules: tuple[AnyRule, ...]) -> tuple[AnyRule, ...]:
    for one, other in combinations(in_force(rules), 2):
        if one.name == other.name and _meet(one, other):
            raise ValueError(f"two rules named {one.name!r} would speak of the same scores in turn; name them apart")
    return rules


def _meet(one: Rule, other: Rule) -> bool:
    same_scorer = one.scorer == other.scorer or None in {one.scorer, other.scorer}
    if not (isinstance(one, Windowed) and isinstance(other, Windowed)):
        return same_scorer  # only rules over a window tell routes apart: of others there is one alert for all
    same_route = any(_overlap(first, second) for first in one.routes or ("*",) for second in other.routes or ("*",))
    return same_scorer and same_route


def _overlap(one: str, other: str) -> bool:
    """Whether a route may fit both patterns; two with places left open are taken to."""
    open_places = [any(sign in pattern for sign in "*?[") for pattern in (one, other)]
    return all(open_places) or fnmatchcase(one, other) or fnmatchcase(other, one)


def in_force(rules: Sequence[AnyRule]) -> tuple[AnyRule, ...]:
    """Return what is on by default, unless one of its kind is configured, and what is configured and enabled."""
    configured = {rule.kind for rule in rules}
    return (
        *(rule for rule in BY_DEFAULT if rule.kind not in configured),
        *(rule for rule in rules if rule.enabled),
    )


Rules = Annotated[
    tuple[
        Annotated[
            Annotated[Drop, Tag("drop")]
            | Annotated[Floor, Tag("floor")]
            | Annotated[LowRate, Tag("low_rate")]
            | Annotated[NoncommittalRate, Tag("noncommittal_rate")]
            | Annotated[NoData, Tag("no_data")]
            | Annotated[ScorerError, Tag("scorer_error")]
            | Annotated[BudgetExhausted, Tag("budget_exhausted")],
            Discriminator(
                _kind_of,
                custom_error_type="kind_unknown",
                custom_error_message=f"kind must be one of {', '.join(KINDS)}",
            ),
        ],
        ...,
    ],
    AfterValidator(_told_apart),
]
