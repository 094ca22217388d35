"""What is being learned, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from germane.cli.output import harmless

if TYPE_CHECKING:
    from germane.storage import BaselineVersion


def line(version: BaselineVersion) -> str:
    """Say until when a baseline is being learned."""
    what = "new routes of " if version.reason == "route_joined" else ""
    about = f"{what}{harmless(version.key.scorer, 40)} of {harmless(version.key.service, 40)}"
    return f"learning until {version.until:%Y-%m-%d %H:%M} UTC: {about}; drops are noticed from then on"


def as_dicts(versions: Sequence[BaselineVersion]) -> list[dict[str, Any]]:
    """Return what is being learned ready for JSON."""
    return [{**one.key._asdict(), "reason": one.reason, "since": one.since, "until": one.until} for one in versions]
