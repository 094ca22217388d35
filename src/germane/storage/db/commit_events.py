"""What committed transactions made of exchanges, for whoever keeps count of it in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from sqlalchemy import Connection

Ended = tuple[str, str, str, str]
"""Route, scorer, outcome and reason. Without a scorer the outcome is ``stored`` or ``dropped``: an exchange that came;
with one it is ``scored``, ``skipped`` or ``failed``. The reason is empty where there is none."""
Told = Callable[[Mapping[Ended, int]], object]

_PLACE: Final = "germane_moved"


def note(connection: Connection, ended: Mapping[Ended, int]) -> None:
    """Note what holds once the transaction is committed."""
    connection.info.setdefault(_PLACE, Counter()).update(ended)


def take(connection: Connection) -> Mapping[Ended, int]:
    """Return what was noted, and forget it: a connection outlives its transactions."""
    found: Mapping[Ended, int] = connection.info.pop(_PLACE, {})
    return found
