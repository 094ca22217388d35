"""What is taken for normal, and for what that is still being learned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from germane.storage import BaselineVersion, Store

WHY: Final = {
    "first": "the first of this judge",
    "judge_changed": "the judge changed",
    "route_joined": "routes joined",
    "accepted": "somebody accepted it",
    "imported": "it was imported",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBaseline:
    """One version of a baseline as it is shown."""

    version: BaselineVersion
    in_use: bool
    """Whether drops are found by it now."""

    @property
    def why(self) -> str:
        """Why it is there."""
        return WHY.get(self.version.reason, self.version.reason)

    @property
    def scope(self) -> str:
        """Which exchanges it is of; empty of all."""
        patterns: dict[str, str] = json.loads(self.version.key.scope) if self.version.key.scope else {}
        return ", ".join(f"{name}={pattern}" for name, pattern in patterns.items())

    @property
    def routes(self) -> int:
        """How many routes it tells apart."""
        return 0 if self.version.baseline is None else len(self.version.baseline.routes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baselines:
    """All that are in force or learned."""

    used: Sequence[ShownBaseline]
    """By service and scorer."""
    earlier: Sequence[ShownBaseline]
    """Of judges that do not score any more."""
    learning: Sequence[ShownBaseline]
    overdue: bool
    """Whether learning should be over, and nobody has looked since."""


def baselines_of(store: Store, now: datetime) -> Baselines:
    """Read what is in force, and what is learned of the judges that score now."""
    used = {one.baseline_id for one in store.detectors()}
    active = [one for one in store.baselines() if one.status == "active"]
    shown = [ShownBaseline(version=one, in_use=one.id in used) for one in active]
    learning = [ShownBaseline(version=one, in_use=False) for one in store.learning()]
    return Baselines(
        used=[one for one in shown if one.in_use],
        earlier=[one for one in shown if not one.in_use],
        learning=learning,
        overdue=any(one.version.until <= now for one in learning),
    )
