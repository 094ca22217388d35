"""What the sampler knows of an exchange before any draw: who cannot score it, and whether a rule asks for it."""

from __future__ import annotations

import inspect
import logging
from asyncio import CancelledError
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any, Final

from germane.errors import SettingsError, place_of
from germane.exchange import AttributeValue, Exchange
from germane.score import Reason
from germane.scorers import Scorer, lacks_input
from germane.settings import Always, Match

logger_predicate = logging.getLogger("germane.monitor")


class Predicate:
    """A function of an exchange that says yes or no. Whatever it does, the sampler goes on."""

    def __init__(self, name: str, function: Callable[[Exchange], Any]) -> None:
        self.name = name
        self._function = function
        self._told = False

    def holds(self, exchange: Exchange, *, otherwise: bool) -> bool:
        """Return what it says; ``otherwise`` where it raises or says neither yes nor no, which is logged once."""
        try:
            return self._asked(exchange)
        except (Exception, SystemExit, CancelledError) as error:  # noqa: BLE001 - anybody's code: it must not end the loop
            self._tell(error)
            return otherwise

    def _asked(self, exchange: Exchange) -> bool:
        said = self._function(exchange)
        if inspect.iscoroutine(said):
            said.close()
        if said is None or inspect.isawaitable(said):
            raise TypeError("neither yes nor no")
        return bool(said)

    def _tell(self, error: BaseException) -> None:
        if not self._told:
            self._told = True  # of the error only its type and place: its text may quote what was asked
            logger_predicate.warning(
                "predicate %s fails, and decides nothing where it does: %s", self.name, place_of(error),
            )  # fmt: skip


def find(name: str, setting: str) -> Predicate:
    """Import the function ``module:function`` that a setting names.

    Raises:
        SettingsError: it cannot be imported, or is no function of an exchange; names setting and cause.
    """
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"setting {setting} = {name!r}: cannot be imported: {error}") from error
    if not callable(found) or inspect.isclass(found) or inspect.iscoroutinefunction(found):
        raise SettingsError(f"setting {setting} = {name!r}: must be a function, not async, that takes the exchange")
    return Predicate(name, found)


logger = logging.getLogger("germane.monitor")

WHOLE: Final = ("ok",)
"""How a handler ended whose answer is whole: half an answer, left by a caller who hung up or by an error on the way,
would count as a bad one."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What is known of one exchange."""

    unfit: Mapping[str, Reason] = field(default_factory=dict)
    """Scorers that cannot or need not score it, and why."""
    always: bool = False
    """Whether a rule of the setting ``always`` asks for it; those that wait for feedback are not among them."""


class Condition:
    """A choice of exchanges from the settings, with its predicate imported.

    Args:
        otherwise: what a predicate that raises, or says neither yes nor no, is taken to say.

    Raises:
        SettingsError: the predicate cannot be imported.
    """

    def __init__(self, match: Match, setting: str, *, otherwise: bool) -> None:
        self.match = match
        self._otherwise = otherwise
        self._predicate: Predicate | None = None
        if match.predicate is not None:
            self._predicate = find(match.predicate, f"{setting}.predicate")

    def fits(self, exchange: Exchange) -> bool:
        """Return whether the exchange fits all that is given; the predicate is asked last."""
        match = self.match
        if match.routes and not any(fnmatchcase(exchange.route, pattern) for pattern in match.routes):
            return False
        if match.status and exchange.status not in match.status:
            return False
        if not all(self._has(exchange, name, pattern) for name, pattern in match.attributes.items()):
            return False
        return self._predicate is None or self._predicate.holds(exchange, otherwise=self._otherwise)

    @staticmethod
    def _has(exchange: Exchange, name: str, pattern: str) -> bool:
        value = exchange.attributes.get(name)
        return value is not None and fnmatchcase(_text(value), pattern)


class Fitness:
    """Tells of any exchange who can score it, and whether it is to be scored whatever the draw says.

    Raises:
        SettingsError: a predicate cannot be imported.
    """

    def __init__(
        self, scorers: Sequence[Scorer], *, filters: Mapping[str, Match] | None = None, always: Sequence[Always] = ()
    ) -> None:
        self._scorers = scorers
        # Where a predicate fails, a filter lets through: a score too many is better than a hole that nobody sees.
        self._filters = {
            name: Condition(match, f"filters.{name}", otherwise=True) for name, match in (filters or {}).items()
        }
        rules = [(rule, Condition(rule, f"always.{number}", otherwise=False)) for number, rule in enumerate(always)]
        self._always = [condition for rule, condition in rules if rule.feedback_below is None]
        self.on_feedback = [(rule.feedback_below, one) for rule, one in rules if rule.feedback_below is not None]
        """Rules that wait for a person's label: the label that is too high for them, and what else they ask for."""

    def of(self, exchange: Exchange) -> Fit:
        """Say what is known of an exchange. It may call functions of the user's."""
        rules = [rule for rule in self._always if rule.fits(exchange)]
        # A rule that names how the handler ended asks for that answer, whole or not.
        asked_for = any(rule.match.status for rule in rules)
        found = ((scorer.name, self._unfit(exchange, scorer, asked_for=asked_for)) for scorer in self._scorers)
        return Fit({name: reason for name, reason in found if reason is not None}, always=bool(rules))

    def _unfit(self, exchange: Exchange, scorer: Scorer, *, asked_for: bool) -> Reason | None:
        if lacks_input(scorer, exchange):
            return Reason.MISSING_INPUT
        return None if self._takes(exchange, self._filters.get(scorer.name), asked_for=asked_for) else Reason.FILTERED

    def _takes(self, exchange: Exchange, chosen: Condition | None, *, asked_for: bool) -> bool:
        named = chosen is not None and bool(chosen.match.status)
        if not named and not asked_for and exchange.status not in WHOLE:
            return False
        return chosen is None or chosen.fits(exchange)


def tell_unused(filters: Iterable[str], scorers: Collection[str]) -> None:
    """Say in the log which filters are of a scorer that is not among those of this process."""
    for name in filters:
        if scorers and name not in scorers:
            logger.warning(
                "filters.%s chooses exchanges for a scorer that does not run here (what does: %s): it changes nothing",
                name, ", ".join(sorted(scorers)),
            )  # fmt: skip


def _text(value: AttributeValue) -> str:
    """Return an attribute's value as text, as TOML and JSON write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
