"""Whether answers got worse, where and since when: one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from germane.alert import Alert, Level
from germane.dashboard.happened import routes_of
from germane.dashboard.headline import called
from germane.dashboard.phrases import (
    Moments,
    Piece,
    few,
    known,
    length,
    link,
    more_routes,
    place,
    quoted,
    strong,
    sure,
)
from germane.dashboard.situation import DAY, MEANS, RATES, Situation, risen
from germane.dashboard.unscored import unscored
from germane.storage import Comparison, Estimate

State = Literal[
    "worse", "recovering", "better", "unchanged", "new", "judge_changed", "few", "unscored", "stale", "empty"
]
_TONES: Final = {
    "worse": "bad",
    "recovering": "warn",
    "better": "good",
    "unchanged": "good",
    "unscored": "warn",
    "stale": "warn",
}
_MORE: Final = {"low_rate": "More answers are low on", "noncommittal_rate": "More answers refuse on"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One sentence, in pieces, and what it speaks of."""

    state: State
    pieces: tuple[Piece, ...]
    routes: tuple[str, ...] = ()
    """That got worse, or better: the largest change first."""
    others: tuple[Alert, ...] = ()
    """Open alerts that the sentence says nothing of."""

    is_low: bool = False
    """Whether most answers are in the lowest band: that nothing changes is then not good."""

    @property
    def tone(self) -> str:
        """How it is coloured: bad, warn, good or empty."""
        return "" if self.is_low and self.state == "unchanged" else _TONES.get(self.state, "")

    @property
    def text(self) -> str:
        """The sentence as plain text."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fall:
    """Where answers got worse: what the comparison says of it, and the alert."""

    route: str | None
    """None: the service as a whole."""
    line: Comparison | None = None
    alert: Alert | None = None

    @property
    def by(self) -> float:
        """How far its mean fell."""
        before, after = self.levels
        return 0.0 if before is None or after is None else before.mean - after.mean

    @property
    def levels(self) -> tuple[Estimate | Level | None, Estimate | Level | None]:
        """Before and after, from the comparison where there is enough, else as the alert has them."""
        if self.line is not None and self.line.compared:
            return self.line.before, self.line.after
        if self.alert is None:
            return None, None
        shifts = (one for one in self.alert.shifts if one.kind == "route" and one.name == self.route)
        shift = next(shifts, None)
        return (self.alert.baseline, self.alert.current) if shift is None else (shift.before, shift.since)

    @property
    def is_of_a_share(self) -> bool:
        """Whether the alert is about a share of the answers and no mean."""
        return self.alert is not None and self.alert.kind in RATES


def verdict_of(given: Situation) -> Verdict:
    """Return the sentence. An open alert about answers always shows as worse, or as recovering."""
    falls = _falls(given)
    if falls:
        return _worse(given, falls)
    if given.answered_at is None:
        return _of("empty", given, strong("No answer has been captured yet."), Piece(" "), link(*_START))
    if given.now - given.answered_at > DAY:
        return _stale(given, given.answered_at)
    if given.current is None:
        return _of("unscored", given, *unscored(given))
    if given.comparisons is None or not any(one.compared for one in given.routes):
        return _without_comparison(given, given.current)
    rises = [one for one in risen(given.comparisons) if one.fingerprint == given.current.fingerprint]
    rises = [one for one in rises if _moved(one, given)]
    return _better(given, rises) if rises else _unchanged(given, given.current)


_START: Final = ("Put germane on your application", "/start")


def _falls(given: Situation) -> list[_Fall]:
    """Return where answers got worse, the largest drop first."""
    found = {one.route: _Fall(route=one.route, line=one) for one in given.routes if _dropped(one, given)}
    if not found and given.whole is not None and _dropped(given.whole, given):
        found[given.whole.route] = _Fall(route=given.whole.route, line=given.whole)
    for alert in given.alerts:
        if alert.kind in MEANS | RATES and alert.scorer in {None, given.scorer}:
            route = next(iter(routes_of(alert)), None)
            line = next((one for one in given.routes if one.route == route), None)
            found[route] = _Fall(route=route, line=line if route is not None else given.whole, alert=alert)
    return sorted(found.values(), key=lambda one: (-one.by, one.route or ""))


def _dropped(one: Comparison, given: Situation) -> bool:
    return one.finding == "dropped" and _moved(one, given)


def _moved(one: Comparison, given: Situation) -> bool:
    return one.difference is not None and abs(one.difference) >= given.min_drop


def _worse(given: Situation, falls: Sequence[_Fall]) -> Verdict:
    first, *more = falls
    recovering = all(_is_recovering(one, given) for one in falls)
    told = {one.alert.id for one in falls if one.alert is not None}
    pieces = [*_where(given, first), *_how_far(given, first)]
    pieces += [Piece(f"; and on {more_routes(len(more))}")] if more else []
    pieces += [Piece("; the alert is still open, recovering")] if recovering else []
    return Verdict(
        state="recovering" if recovering else "worse",
        pieces=(*pieces, Piece(". "), *_links(falls)),
        routes=tuple(one.route for one in falls if one.route is not None),
        others=tuple(one for one in given.alerts if one.id not in told),
    )


def _is_recovering(fall: _Fall, given: Situation) -> bool:
    """Whether nothing but the alert says that it is worse now."""
    if fall.alert is None:
        return False
    line = fall.line
    lower = line is not None and line.finding in {"dropped", "lower"} and _moved(line, given)
    is_back = line is not None and line.compared and not lower
    return fall.alert.state == "recovering" or (is_back and not fall.is_of_a_share)


def _where(given: Situation, fall: _Fall) -> Iterator[Piece]:
    yield strong(_MORE.get(fall.alert.kind if fall.alert else "", f"{called(given.scorer)} fell on"))
    yield Piece(" ")
    yield place(fall.route)


def _how_far(given: Situation, fall: _Fall) -> Iterator[Piece]:
    if fall.alert is not None and fall.is_of_a_share:
        yield Piece(f": {fall.alert.message.rstrip('.')}")
        return
    moments = Moments(given.now, given.zone)
    before, after = fall.levels
    if after is not None:
        yield Piece(f". {'Last 24 h' if isinstance(after, Estimate) else 'Since then'}: {sure(after)}")
    if before is not None:
        window = given.before if isinstance(before, Estimate) else None
        yield Piece(f" against {known(before, window, moments)}")
    told, seen = fall.alert.onset if fall.alert else None, given.onsets.get(fall.route or "")
    if told is not None:
        yield Piece(f", since about {moments.clock(told)}")
    elif seen is not None:
        yield Piece(f", since about {moments.day(seen) if given.onset_step >= DAY else moments.clock(seen)}")


def _links(falls: Sequence[_Fall]) -> Iterator[Piece]:
    route = falls[0].route
    query = "" if route is None else f"&route={quoted(route)}"
    yield link("See the worst answers", f"/answers?window=24h&sort=lowest{query}")
    for alert in dict.fromkeys(one.alert.id for one in falls if one.alert is not None):
        yield Piece(" or ")
        yield link("the alert", f"/alerts/{quoted(alert)}")


def _better(given: Situation, rises: Sequence[Comparison]) -> Verdict:
    routes = sorted((one for one in rises if one.route is not None), key=lambda one: -(one.difference or 0.0))
    first = routes[0] if routes else rises[0]
    pieces = [strong(f"{called(given.scorer)} rose on"), Piece(" "), place(first.route)]
    if first.after is not None and first.before is not None:
        usual = known(first.before, given.before, Moments(given.now, given.zone))
        pieces.append(Piece(f". Last 24 h: {sure(first.after)} against {usual}"))
    pieces += [Piece(f"; and on {more_routes(len(routes) - 1)}")] if len(routes) > 1 else []
    named = tuple(one.route for one in routes if one.route is not None)
    return Verdict(state="better", pieces=(*pieces, Piece(".")), routes=named, others=tuple(given.alerts))


def _unchanged(given: Situation, current: Estimate) -> Verdict:
    moments = Moments(given.now, given.zone)
    usual = "" if given.usual is None else f", {known(given.usual, given.before, moments)}"
    unknown = sum(not one.compared and one.after is not None for one in given.routes)
    unsure = f"; {unknown} of {len(given.routes)} had too few answers to tell" if unknown else ""
    said = f" on any route in the last 24 h: {sure(current)}{usual}{unsure}."
    return _of("unchanged", given, strong("No clear change"), Piece(said))


def _without_comparison(given: Situation, current: Estimate) -> Verdict:
    lines = given.comparisons.routes if given.comparisons else ()
    if any(one.finding == "judge_changed" for one in lines):
        said = (
            f"The new one gives {sure(current)} in the last 24 h."
            if current.enough
            else f"By the new one: {few(current)}."
        )
        told = strong("The judge changed: no comparison is possible yet.")
        return _of("judge_changed", given, told, Piece(f" {said}"))
    if not current.enough:
        return _of("few", given, strong("Not enough data"), Piece(f" in the last 24 h{few(current)[len(_FEW) :]}."))
    usual = "" if given.usual is None else f": {few(given.usual)} before" if not given.usual.enough else ""
    said = f" {sure(current)} in the last 24 h; there is nothing to compare it with yet{usual}."
    return _of("new", given, strong(f"{called(given.scorer)} is"), Piece(said))


_FEW: Final = "not enough data"


def _stale(given: Situation, newest: datetime) -> Verdict:
    since = Moments(given.now, given.zone).clock(newest)
    said = f" None has come since {since}. Does the application run, and write here? germane doctor tells. "
    old = strong(f"The newest answer is {length(given.now - newest)} old.")
    return _of("stale", given, old, Piece(said), link("See the worker", "/worker"))


def _of(state: State, given: Situation, *pieces: Piece) -> Verdict:
    is_low = given.current is not None and given.current.low_share > 0.5
    return Verdict(state=state, pieces=pieces, others=tuple(given.alerts), is_low=is_low)
