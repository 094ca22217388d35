"""Which scorers are in force, and the wish to have answers scored again by them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from germane.annotation import RECORDED
from germane.insights.context import Desk
from germane.storage import Rescored, Sheet

ALIVE: Final = timedelta(minutes=2)
"""A process that was seen within that time scores."""
_LEFT_OUT: Final = frozenset({"not_drawn", "budget"})


def in_force(desk: Desk) -> Mapping[str, str]:
    """Return fingerprints by scorer: those of the process seen last."""
    found: dict[str, str] = {}
    for worker in desk.store.workers():
        for name, fingerprint in worker.scorers.items():
            found.setdefault(name, fingerprint)
    return found


def is_awake(desk: Desk) -> bool:
    """Whether some process scores."""
    return bool(desk.store.workers(within=ALIVE))


def score_again(desk: Desk, sheet: Sheet, scorer: str | None) -> str:
    """Have it scored again, by one scorer or by all that have looked at it; return a word for what came of it."""
    known = {one.scorer: one.fingerprint for one in sheet.works if one.fingerprint != RECORDED}
    # Where nobody tells what is in force, whoever scored it may come back.
    scorers = {**known, **in_force(desk)}
    names = [scorer] if scorer else sorted(known or scorers)
    if _was_left_out(sheet):
        ready = desk.store.consider([], [sheet.exchange.id], {name: scorers[name] for name in names if name in scorers})
        return _word(desk, "ready" if ready else "left_out")
    pairs = [(sheet.exchange.id, name) for name in names]
    found = desk.store.rescore(pairs, scorers, budgeted=desk.settings.budget is not None)
    return _word(desk, _most(found))


def _was_left_out(sheet: Sheet) -> bool:
    """Whether nothing but luck or money kept it from being scored."""
    reasons = {one.reason.value if one.reason else "" for one in sheet.works}
    return bool(sheet.works) and not sheet.scores and bool(reasons) and reasons <= _LEFT_OUT


def _most(found: Rescored) -> str:
    return next((name for name in ("ready", "waiting", "erased", "left_out") if getattr(found, name)), "unknown")


def _word(desk: Desk, word: str) -> str:
    return "asleep" if word == "ready" and not is_awake(desk) else word
