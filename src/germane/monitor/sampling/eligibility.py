"""Eligibility of exchanges: which scorers cannot score an exchange, and whether a rule requires a score."""

from __future__ import annotations

import inspect
import logging
from asyncio import CancelledError
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from germane.errors import SettingsError, error_location
from germane.exchange import Exchange, matches_attributes
from germane.score import UnscoredReason
from germane.scorers import Scorer, lacks_input
from germane.settings import AlwaysScore, ExchangeFilter, matches_patterns

COMPLETE_STATUSES: Final = ("ok",)
"""The statuses of exchanges with a complete answer. Other answers were cut short by an error or a disconnected client,
and would get low scores."""

logger = logging.getLogger("germane.monitor")


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The eligibility of an exchange, determined before sampling."""

    skip_reasons: Mapping[str, UnscoredReason] = field(default_factory=dict)
    """The scorers that skip the exchange, each with the reason."""
    always_score: bool = False
    """Whether a rule in the ``always_score`` setting requires a score, not counting rules that wait for feedback."""


class Predicate:
    """A user-supplied function that accepts or rejects an exchange. Its exceptions do not stop the sampler."""

    def __init__(self, name: str, function: Callable[[Exchange], Any]) -> None:
        self.name = name
        self._function = function
        self._has_failed = False

    def evaluate(self, exchange: Exchange, *, default: bool) -> bool:
        """Return the function's result, or ``default`` if it raises, which is logged once, or returns no value."""
        try:
            result = self._function(exchange)
            if result is not None and not inspect.isawaitable(result):
                return bool(result)
            if inspect.iscoroutine(result):
                result.close()
            error: BaseException = TypeError("the predicate returned no value")
        except (Exception, SystemExit, CancelledError) as raised:  # noqa: BLE001 - user code must not stop the sampler
            error = raised
        if not self._has_failed:
            self._has_failed = True
            # Only the location is logged, because the message may quote user text.
            logger.warning("predicate %s failed and is ignored whenever it fails: %s", self.name, error_location(error))
        return default


class ExchangeMatcher:
    """A configured filter, with its predicate imported.

    Errors name ``setting``; ``default`` is the result if the predicate fails.

    Raises:
        SettingsError: The predicate cannot be imported.
    """

    def __init__(self, filter_: ExchangeFilter, setting: str, *, default: bool) -> None:
        self.filter = filter_
        self._default = default
        self._predicate: Predicate | None = None
        if filter_.predicate is not None:
            self._predicate = import_predicate(filter_.predicate, f"{setting}.predicate")

    def matches(self, exchange: Exchange) -> bool:
        """Return whether the exchange meets all conditions. The predicate is called last."""
        conditions = self.filter
        if not matches_patterns(conditions.routes, exchange.route):
            return False
        if conditions.status and exchange.status not in conditions.status:
            return False
        if not matches_attributes(exchange.attributes, conditions.attributes):
            return False
        return self._predicate is None or self._predicate.evaluate(exchange, default=self._default)


class EligibilityChecker:
    """Determines which scorers can score an exchange, and whether it must be scored.

    Raises:
        SettingsError: A predicate cannot be imported.
    """

    def __init__(
        self,
        scorers: Sequence[Scorer],
        *,
        filters: Mapping[str, ExchangeFilter] | None = None,
        always_score: Sequence[AlwaysScore] = (),
    ) -> None:
        self._scorers = scorers
        # If a filter's predicate fails, the exchange passes, because an extra score is better than a silent gap.
        self._filters = {
            name: ExchangeMatcher(filter_, f"filters.{name}", default=True) for name, filter_ in (filters or {}).items()
        }
        rules = [
            (rule.feedback_below, ExchangeMatcher(rule, f"always_score.{number}", default=False))
            for number, rule in enumerate(always_score)
        ]
        self._always_score = [matcher for feedback_below, matcher in rules if feedback_below is None]
        self.feedback_rules = [(below, matcher) for below, matcher in rules if below is not None]
        """The rules that wait for feedback. Each has the label value below which it applies, and its other
        conditions."""

    def check(self, exchange: Exchange) -> Eligibility:
        """Return the eligibility of an exchange. May call user-supplied predicates."""
        rules = [rule for rule in self._always_score if rule.matches(exchange)]
        # A rule or filter with a status condition selects answers with that status, even if they are incomplete.
        status_required = any(rule.filter.status for rule in rules)
        skip_reasons: dict[str, UnscoredReason] = {}
        for scorer in self._scorers:
            filter_ = self._filters.get(scorer.name)
            any_status = status_required or (filter_ is not None and bool(filter_.filter.status))
            is_incomplete = not any_status and exchange.status not in COMPLETE_STATUSES
            if lacks_input(scorer, exchange):
                skip_reasons[scorer.name] = UnscoredReason.MISSING_INPUT
            elif is_incomplete or (filter_ is not None and not filter_.matches(exchange)):
                skip_reasons[scorer.name] = UnscoredReason.FILTERED
        return Eligibility(skip_reasons, always_score=bool(rules))


def import_predicate(name: str, setting: str) -> Predicate:
    """Import the synchronous function that a setting names as ``module:function``, or raise SettingsError."""
    module, _, path = name.partition(":")
    try:
        function: Any = import_module(module)
        for part in path.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"setting {setting} = {name!r}: cannot be imported: {error}") from error
    if not callable(function) or inspect.isclass(function) or inspect.iscoroutinefunction(function):
        raise SettingsError(f"setting {setting} = {name!r}: must be a synchronous function that takes an exchange")
    return Predicate(name, function)


def warn_unused_filters(filters: Iterable[str], scorers: Collection[str]) -> None:
    """Log a warning for each filter whose scorer does not run in this process."""
    for name in filters:
        if scorers and name not in scorers:
            running = ", ".join(sorted(scorers))
            logger.warning(
                "filters.%s has no effect: this process does not run a scorer with that name (running: %s)",
                name,
                running,
            )
