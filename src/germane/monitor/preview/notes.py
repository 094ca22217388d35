"""What a replay goes by, and what it cannot know: in plain words."""

from __future__ import annotations

from typing import Final

from germane.monitor.preview.shelf import Shelf
from germane.settings import AnyRule, Drop
from germane.shown import harmless
from germane.storage import BaselineVersion

_LATE: Final = "scores count from the time of their answers on, also where they were made later"
_ERRORS: Final = "failures count that were final; what was tried in vain and went well later is not kept"
_BUDGET: Final = "a day's budget counts as spent from its first answer on that was not paid for; the sums are the day's"
_NOTES: Final = {"no_data": (), "scorer_error": (_ERRORS,), "budget_exhausted": (_BUDGET,)}


def notes_of(rule: AnyRule, shelf: Shelf) -> tuple[str, ...]:
    """Return what is to be known of a rule's replay."""
    if isinstance(rule, Drop):
        return tuple(_baseline(one, made=one.id in shelf.made) for one in shelf.gone_by() if _is_told(one, rule))
    return _NOTES.get(rule.kind, (_LATE,))


def _is_told(one: BaselineVersion, rule: Drop) -> bool:
    mine = rule.scorer in {None, one.key.scorer}
    return mine and (one.baseline is not None or one.status == "learning")


def _baseline(one: BaselineVersion, *, made: bool) -> str:
    of = f"{harmless(one.key.scorer, 40)} of {harmless(one.key.service, 40)} ({harmless(one.key.fingerprint, 12)})"
    if one.baseline is None:
        return f"{of}: nothing is watched yet, learning would go on until {one.until:%Y-%m-%d %H:%M} UTC"
    learned = f"learned from {one.since:%Y-%m-%d %H:%M} to {one.until:%Y-%m-%d %H:%M} UTC"
    if made:
        return f"{of}: by a baseline {learned}, as the replay found none that was in force"
    begun = max(one.until, one.created_at)
    return f"{of}: by baseline version {one.number}, {learned}, in force from {begun:%Y-%m-%d %H:%M} UTC on"
