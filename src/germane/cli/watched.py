"""What the doctor finds of what watches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from germane.cli import learned
from germane.cli.examination import Finding

if TYPE_CHECKING:
    from germane.storage import Store

FIX = "wait, or seed it: germane baseline import FILE, or --since 14d of what is stored"


def look_at_learning(store: Store) -> Iterator[Finding]:
    """Tell for which scores drops are not noticed yet."""
    for version in store.learning():
        yield Finding(f"baseline of {version.key.service}", "note", learned.line(version, store.now()), FIX)
