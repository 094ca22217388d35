"""Which judge's scores a detector goes by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from germane.storage import Arrival

ENOUGH: Final = 20
"""Scores in a row of another judge that make it the one to go by: fewer are not enough data for anything. One that
only now and then stands in for the usual judge never takes over."""


class Lead:
    """Follows one fingerprint until another one has the majority: a vote, each score of another counting against it."""

    def __init__(self, fingerprint: str, votes: int = ENOUGH) -> None:
        self.fingerprint = fingerprint
        self._votes = votes

    @classmethod
    def read(cls, state: Mapping[str, Any]) -> Lead:
        """Return it as it was."""
        return cls(state["fingerprint"], state["votes"])

    def state(self) -> dict[str, Any]:
        """Return what it knows, ready for JSON."""
        return {"fingerprint": self.fingerprint, "votes": self._votes}

    def follow(self, arrivals: Sequence[Arrival]) -> int:
        """Count scores up to the one with which another fingerprint takes over; return how many that were.

        All of them, when none does.
        """
        if all(one.fingerprint == self.fingerprint for one in arrivals):
            self._votes = min(ENOUGH, self._votes + len(arrivals))
            return len(arrivals)
        for place, one in enumerate(arrivals):
            if one.fingerprint == self.fingerprint:
                self._votes = min(ENOUGH, self._votes + 1)
            elif self._votes > 1:
                self._votes -= 1
            else:
                self.fingerprint, self._votes = one.fingerprint, ENOUGH
                return place + 1
        return len(arrivals)
