"""Whether answers got worse, where and since when: one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from germane.alert import Alert, Level
from germane.insights.defaults import called
from germane.insights.events import routes_of
from germane.insights.sentences import (
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
from germane.insights.situation import DAY, MEANS, RATES, Situation, risen
from germane.storage import Comparison, Coverage, Estimate

_ADVICE: Final[Mapping[str, str]] = {
    "not_drawn": "none was drawn. Raise the setting rate, or set a budget.",
    "filtered": "filters leave all of them out. Look at the setting filters.",
    "budget": "the budget is spent. There is room again when the next hour or day begins.",
    "missing_input": "what the scorer needs was not captured. Run germane doctor.",
    "queue_full": "the queue was full, and they were dropped. Raise the setting queue, or look at the database.",
    "capture_limit": "more came than are kept. Raise the setting capture_limit.",
    "expired": "they waited until no process had their scorer any more. Run germane worker.",
    "judge_unreachable": "the judge cannot be reached{since}. Look at its address, and whether it runs.",
    "judge_rejected": "the judge's server rejects key, quota or model{since}. Run germane doctor.",
    "judge_timeout": "the judge takes too long{since}. Raise the setting judge_timeout, or take a faster one.",
    "judge_rate_limited": "the judge limits requests{since}. Set requests_per_minute to what it allows.",
    "judge_refused": "the judge refuses to judge them{since}. Take another model.",
    "no_usable_question": "the judge writes no question that can be used{since}. Take another one.",
    "embedder_error": "the embedder fails{since}. Look at its address and model: germane doctor says more.",
    "out_of_range": "the scorer gives values outside its range{since}. Correct the scorer.",
    "scorer_error": "the scorer raises an error{since}. The worker page has its text.",
    "unparsable": "nobody can read what the judge replies{since}. Take another one: germane calibrate says which.",
}
_NO_JUDGE: Final = "no judge is configured. Set OPENAI_API_KEY or OPENAI_BASE_URL, or name scorers that need none."


@dataclass(slots=True)
class _Sum:
    """What became of the answers, by one scorer."""

    seen: int = 0
    pending: int = 0
    missing: Counter[str] = field(default_factory=Counter)

    def add(self, one: Coverage) -> None:
        self.seen += one.seen
        self.pending += one.pending
        self.missing.update(one.failed)
        self.missing.update(one.skipped)


def unscored(given: Situation) -> tuple[Piece, ...]:
    """Return the sentence: how many came, why none was scored, and the next step."""
    sums: dict[str, _Sum] = {}
    for one in given.coverage:
        if given.scorer is None or one.scorer in {given.scorer, ""}:
            sums.setdefault(one.scorer, _Sum()).add(one)
    most = max(sums.values(), key=lambda one: one.seen, default=_Sum())
    many = f"{most.seen:,} answers" if most.seen else "Answers"  # those that nobody has counted yet
    came = "One answer" if most.seen == 1 else many
    scored = "was not scored" if most.seen == 1 else "none was scored"
    return (strong(f"{came} came in the last 24 h, and {scored}:"), Piece(" "), *_why(given, most))


def _why(given: Situation, found: _Sum) -> Iterator[Piece]:
    reason = given.trouble or _reason(found)
    if reason is not None:
        since = "" if given.scored_at is None else f" since {Moments(given.now, given.zone).clock(given.scored_at)}"
        yield Piece(_ADVICE.get(reason, f"{reason.replace('_', ' ')}{{since}}.").format(since=since) + " ")
    elif not given.has_judge:
        yield Piece(f"{_NO_JUDGE} ")
    elif not given.has_worker:
        yield Piece("they wait, and nothing scores. Run germane worker. ")
    else:
        yield Piece(f"{found.pending:,} wait to be scored. " if found.pending else "they wait to be looked at. ")
    yield link("See what the worker does", "/worker")


def _reason(found: _Sum) -> str | None:
    """Return why most of them have no score; None where most still wait."""
    if not found.missing or found.pending > found.missing.total():
        return None
    return min(found.missing, key=lambda reason: (-found.missing[reason], reason))


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
