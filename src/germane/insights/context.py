"""What every screen works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The database, the settings, and what visitors may do."""

    store: Store
    settings: Settings
    now: Callable[[], datetime]
    read_only: bool = False
    """Whether nothing may be written."""
    refresh: timedelta = timedelta(seconds=30)
    """How often an open page asks for what is new."""
