"""What is normal for scores: the mean of the baseline that is gone by."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from germane.storage import Store


def usual_mean(
    store: Store, scorer: str | None, fingerprint: str, *, service: str | None, route: str | None
) -> float | None:
    """Return it, of a route or of the service as a whole; None where there is none, or more than one."""
    from germane.dashboard.usual import level_of

    found = [
        one.baseline
        for one in store.baselines()
        if one.status == "active" and one.baseline is not None and not one.key.scope
        if (one.key.scorer, one.key.fingerprint) == (scorer, fingerprint)
        if service in {None, one.key.service}
    ]
    if len(found) != 1:
        return None
    level = level_of(found[0], route)
    return None if level is None else level[0]
