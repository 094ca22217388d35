"""What a writer's queue holds: exchanges, and what is said from outside; how it is counted and named in the log."""

from __future__ import annotations

from collections.abc import Sequence

from germane.annotation import Annotation, Feedback, Mark, Recorded
from germane.exchange import Exchange
from germane.shown import counted

Item = Exchange | Annotation
_KINDS = {"exchange": Exchange, "label": Feedback, "recorded score": Recorded, "mark": Mark}


def told(items: Sequence[Item]) -> str:
    """Return how many of each kind there are, such as "2 exchanges and 1 label"."""
    counts = {name: sum(isinstance(item, kind) for item in items) for name, kind in _KINDS.items()}
    return " and ".join(counted(count, name) for name, count in counts.items() if count)


def named(item: Item) -> str:
    """Return an id for the log. That of a recorded score may have come from a stranger's browser."""
    return repr(item.exchange_id[:40]) if isinstance(item, Recorded) else str(item.id)
