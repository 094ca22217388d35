"""Which answers an address asks for: a filter, an order and a place, all of it in the query string."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request

from germane.insights.window import View
from germane.score import Reason
from germane.storage import AnswerFilter, AnswerState, Place, Sort

SORTS: Final[Mapping[Sort, str]] = {
    "lowest": "lowest score",
    "highest": "highest score",
    "newest": "newest",
    "dearest": "dearest score",
    "slowest": "slowest answer",
}
STATES: Final[Mapping[AnswerState, str]] = {
    "scored": "scored",
    "failed": "failed",
    "skipped": "skipped",
    "waiting": "waiting",
    "any": "all, scored or not",
}
LABELS: Final[Mapping[str, str]] = {"yes": "by people", "no": "by nobody"}
LONGEST: Final = 200
"""Characters of a text that is looked for."""
_TEXTS: Final = ("route", "fingerprint", "label", "model", "prompt_version")
_KEPT: Final = (*_TEXTS, "text", "below", "at_least", "low", "labelled", "state", "reason", "sort")
_OF_SCORES: Final = frozenset({"fingerprint", "label", "below", "at_least", "low", "sort"})
_DETAILS: Final = frozenset({"label", "labelled", "model", "prompt_version", "fingerprint", "reason", "low"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a visitor looks for."""

    view: View
    chosen: AnswerFilter
    sort: Sort
    after: Place | None
    query: Mapping[str, str]
    """The filter as the address has it, without the window, and without what could not be read."""

    def link(self, path: str, **changes: str | None) -> str:
        """Return the address of a path with the filter and the window; a change to None takes a part out."""
        parts = {**self.view.query, **self.query, **changes}
        query = urlencode({name: value for name, value in parts.items() if value})
        return f"{path}?{query}" if query else path

    @property
    def is_narrow(self) -> bool:
        """Whether anything but the order is asked for."""
        return bool(self.query.keys() - {"sort"})

    @property
    def is_detailed(self) -> bool:
        """Whether something is asked for that few ask for."""
        return bool(self.query.keys() & _DETAILS)

    def of(self, scorer: str | None) -> Asked:
        """Return the same of one scorer."""
        return replace(self, chosen=replace(self.chosen, scorer=scorer))


def asked_of(request: Request, view: View) -> Asked:
    """Return what the address asks for; what cannot be read is taken as not given."""
    given = {name: request.query_params[name].strip() for name in _KEPT if request.query_params.get(name, "").strip()}
    state, query = _state({name: value for name, value in given.items() if _can_be_read(name, value)})
    texts = {name: query.get(name) for name in _TEXTS}
    chosen = AnswerFilter(
        since=view.since,
        until=view.until,
        scorer=view.scorer,
        service=view.service,
        **texts,
        low="low" in query,
        text=query.get("text", ""),
        below=_number(query.get("below")),
        at_least=_number(query.get("at_least")),
        labelled={"yes": True, "no": False}.get(query.get("labelled", "")),
        state=state,
        reason=query.get("reason"),
    )
    after = Place.read(request.query_params.get("after", ""))
    return Asked(view=view, chosen=chosen, sort=_sort(query.get("sort"), state), after=after, query=query)


def _state(query: Mapping[str, str]) -> tuple[AnswerState, Mapping[str, str]]:
    """Return the state, and what of the query such answers can be asked for: those of a state have what it tells.

    A reason leads to what failed or was skipped for it, where nothing else was said that has one.
    """
    usual: AnswerState = "scored"
    state = next((state for state in STATES if state == query.get("state")), usual)
    if "reason" in query and state in {"scored", "any"}:
        state = "failed" if Reason(query["reason"]).state == "failed" else "skipped"
        query = {**query, "state": state}
    left_out = frozenset() if state == "scored" else _OF_SCORES
    return state, {name: value for name, value in query.items() if name not in left_out}


def _sort(asked: str | None, state: AnswerState) -> Sort:
    """Return the order; what has no score comes by time."""
    if state != "scored":
        return "newest"
    usual: Sort = "lowest"
    return next((sort for sort in SORTS if sort == asked), usual)


def _can_be_read(name: str, value: str) -> bool:
    choices: Mapping[str, object] = {"state": STATES, "sort": SORTS, "labelled": LABELS, "reason": set(Reason)}
    if name in choices:
        return value in choices[name]  # type: ignore[operator]  # each of them is a container
    if name in {"below", "at_least"}:
        return _number(value) is not None
    return "\x00" not in value and (name != "text" or len(value) <= LONGEST)


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if -1 <= value <= 1.01 else None
