"""Functions of the user's that choose exchanges, by their names in the settings."""

from __future__ import annotations

import inspect
import logging
from asyncio import CancelledError
from collections.abc import Callable
from importlib import import_module
from typing import Any

from germane.errors import SettingsError
from germane.exchange import Exchange
from germane.monitor.job import place_of

logger = logging.getLogger("germane.monitor")


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
            logger.warning(
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
