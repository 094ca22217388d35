"""The verdict: one sentence that states whether answers got worse, on which routes, and when that began."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal
from urllib.parse import urlencode

from germane.alert import Alert, ScoreLevel
from germane.insights.formatting import (
    DateFormatter,
    describe_alert,
    format_seconds,
    format_whole_hours,
    quote_segment,
    scorer_title,
)
from germane.insights.situation import (
    DAY,
    Piece,
    Situation,
    affected_routes,
    describe_mean,
    describe_reference,
    find_rises,
    link,
    more_routes,
    not_enough_data,
    route_or_service,
    strong,
)
from germane.score import UnscoredReason
from germane.settings import SCORE_RULES, SHARE_RULES
from germane.storage import Comparison, Estimate

VerdictState = Literal[
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
_SHARE_SUBJECTS: Final = {
    "low_score_rate": "More answers have low scores on",
    "noncommittal_rate": "More answers are refusals on",
}
_START: Final = ("Instrument your application", "/start")
_NOT_ENOUGH_DATA: Final = "not enough data"
_NO_JUDGE: Final = (
    "no judge is configured. Set OPENAI_API_KEY or OPENAI_BASE_URL, or configure scorers that need no judge."
)
_CAUSES: Final[Mapping[str, str]] = {
    UnscoredReason.NOT_SAMPLED: "no answer was sampled. Raise sample_rate, or set a budget.",
    UnscoredReason.FILTERED: "filters exclude all of them. Check the filters setting.",
    UnscoredReason.BUDGET: "the budget is exhausted. Scoring will resume when the next hour or day begins.",
    UnscoredReason.MISSING_INPUT: "an input that the scorer needs was not captured. Run germane doctor.",
    UnscoredReason.QUEUE_FULL: "the queue was full, so they were dropped. Raise queue_size, or check the database.",
    UnscoredReason.EXCHANGE_LIMIT: "the exchange limit was exceeded. Raise max_exchanges_per_minute.",
    UnscoredReason.UNREADABLE: "their traces contain no question or no answer. Run germane doctor.",
    UnscoredReason.EXPIRED: "their tasks expired because no worker runs this scorer. Run germane worker.",
    UnscoredReason.JUDGE_UNREACHABLE: "the judge is unreachable{since}. Check its URL, and that it is running.",
    UnscoredReason.JUDGE_REJECTED: "the judge's server rejects the key, quota or model{since}. Run germane doctor.",
    UnscoredReason.JUDGE_TIMEOUT: "requests to the judge time out{since}. Raise judge_timeout, or use a faster model.",
    UnscoredReason.JUDGE_RATE_LIMITED: (
        "the judge limits the request rate{since}. Set requests_per_minute to its server's limit."
    ),
    UnscoredReason.JUDGE_REFUSED: "the judge refuses to score them{since}. Use another model.",
    UnscoredReason.NO_USABLE_QUESTION: "the judge generates no usable question{since}. Use another model.",
    UnscoredReason.EMBEDDER_ERROR: "the embedder fails{since}. Check its URL and model with germane doctor.",
    UnscoredReason.OUT_OF_RANGE: "the scorer returns values outside its range{since}. Fix the scorer.",
    UnscoredReason.SCORER_ERROR: "the scorer raises an error{since}. See the error message on the worker page.",
    UnscoredReason.UNPARSABLE: "the judge's replies cannot be parsed{since}. Compare models with germane calibrate.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A verdict in one sentence, split into pieces, with the routes that it refers to."""

    state: VerdictState
    pieces: tuple[Piece, ...]
    routes: tuple[str, ...] = ()
    """Routes that got worse or better, sorted by change, largest first."""
    other_alerts: tuple[Alert, ...] = ()
    """Open alerts that the sentence does not mention."""
    began: datetime | None = None
    """Estimated onset of the largest drop, if any."""
    began_on: str | None = None
    """The route of that drop, or None for the service as a whole."""
    lacks_alert: bool = False
    """Whether answers got worse although no alert is open for any of the routes that got worse."""
    is_low: bool = False
    """Whether most answers are in the lowest band. An unchanged mean is then not good news."""

    @property
    def tone(self) -> str:
        """Color of the verdict: ``bad``, ``warn``, ``good`` or empty."""
        return "" if self.is_low and self.state == "unchanged" else _TONES.get(self.state, "")

    @property
    def text(self) -> str:
        """The sentence as plain text."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decline:
    """A route or service that got worse, with its comparison and its alert."""

    route: str | None
    """Name of the route, or None for the service as a whole."""
    comparison: Comparison | None = None
    alert: Alert | None = None

    @property
    def drop(self) -> float:
        """The decrease in the mean."""
        before, after = self.levels
        return 0.0 if before is None or after is None else before.mean - after.mean

    @property
    def levels(self) -> tuple[Estimate | ScoreLevel | None, Estimate | ScoreLevel | None]:
        """Levels before and after the decline, from the comparison if it has enough scores, or else from the alert."""
        if self.comparison is not None and self.comparison.is_comparable:
            return self.comparison.before, self.comparison.after
        if self.alert is None:
            return None, None
        shifts = (shift for shift in self.alert.shifts if shift.dimension == "route" and shift.name == self.route)
        shift = next(shifts, None)
        return (self.alert.baseline, self.alert.current) if shift is None else (shift.before, shift.since)

    @property
    def is_about_share(self) -> bool:
        """Whether the alert is about a share of answers rather than a mean."""
        return self.alert is not None and self.alert.type in SHARE_RULES


@dataclass(slots=True)
class _Outcomes:
    """Outcomes of one scorer's answers."""

    seen: int = 0
    pending: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """Number of skipped and failed answers, by reason."""


def build_verdict(situation: Situation) -> Verdict:
    """Return the verdict. While an alert about answers is open, the state is always ``worse`` or ``recovering``."""
    declines = _find_declines(situation)
    if declines:
        return _worse(situation, declines)
    if situation.answered_at is None:
        return _plain("empty", situation, strong("No answer has been captured yet."), Piece(" "), link(*_START))
    if situation.now - situation.answered_at > DAY:
        since = DateFormatter(situation.now, situation.zone).date_time(situation.answered_at)
        age = strong(f"The newest answer is {format_whole_hours(situation.now - situation.answered_at)} old.")
        text = (
            f" No answer has arrived since {since}. Check that the application runs and writes to this database: "
            "run germane doctor. "
        )
        return _plain("stale", situation, age, Piece(text), link("Open the worker page", "/worker"))
    if situation.current is None and situation.route is not None and not any(one.seen for one in situation.coverage):
        return _plain("empty", situation, strong("No answer arrived on this route in the last 24 h."))
    if situation.current is None:
        return _plain("unscored", situation, *_unscored(situation))
    if situation.comparisons is None or not any(line.is_comparable for line in situation.routes):
        return _without_comparison(situation, situation.current)
    fingerprint = situation.current.fingerprint
    rises = [line for line in find_rises(situation.comparisons) if line.fingerprint == fingerprint]
    rises = [line for line in rises if _is_large_enough(line, situation)]
    return _better(situation, rises) if rises else _unchanged(situation, situation.current)


def _find_declines(situation: Situation) -> list[_Decline]:
    """Return the routes that got worse, or the service as a whole, sorted by drop, largest first."""

    def dropped(line: Comparison) -> bool:
        return line.finding == "dropped" and _is_large_enough(line, situation)

    whole = situation.whole
    declines = {line.route: _Decline(route=line.route, comparison=line) for line in situation.routes if dropped(line)}
    if not declines and whole is not None and dropped(whole):
        declines[whole.route] = _Decline(route=whole.route, comparison=whole)
    for alert in situation.alerts:
        if alert.type in SCORE_RULES and alert.scorer in {None, situation.scorer}:
            affected = affected_routes(alert)
            route = situation.route if situation.route in affected else next(iter(affected), None)
            if situation.route is not None and route is None:
                continue  # a service-wide alert, which the page lists below the verdict
            line = next((line for line in situation.routes if line.route == route), None)
            declines[route] = _Decline(route=route, comparison=whole if route is None else line, alert=alert)
    return sorted(declines.values(), key=lambda decline: (-decline.drop, decline.route or ""))


def _is_large_enough(line: Comparison, situation: Situation) -> bool:
    return line.difference is not None and abs(line.difference) >= situation.min_drop


def _worse(situation: Situation, declines: Sequence[_Decline]) -> Verdict:
    first, *more = declines
    recovering = all(_is_recovering(decline, situation) for decline in declines)
    mentioned = {decline.alert.id for decline in declines if decline.alert is not None}
    subject = f"{scorer_title(situation.scorer)} fell on"
    if first.alert is not None:
        subject = _SHARE_SUBJECTS.get(first.alert.type, subject)
    pieces = [strong(subject), Piece(" "), route_or_service(first.route)]
    # Describe the size and start of the drop.
    if first.alert is not None and first.is_about_share:
        message = describe_alert(first.alert, DateFormatter(situation.now, situation.zone).date_time)
        pieces.append(Piece(f": {message.rstrip('.')}"))
    else:
        dates = DateFormatter(situation.now, situation.zone)
        before, after = first.levels
        period = _period(first, dates)
        if after is not None:
            pieces.append(Piece(f". {period}: {describe_mean(after)}"))
        if before is not None:
            reference_period = situation.reference_period if isinstance(before, Estimate) else None
            pieces.append(Piece(f", compared with {describe_reference(before, reference_period, dates)}"))
        if first.alert is not None and first.alert.onset is not None and not period.startswith("Since"):
            pieces.append(Piece(f", since about {dates.date_time(first.alert.onset)}"))
        elif (onset := situation.onsets.get(first.route or "")) is not None:
            date = dates.date(onset) if situation.onset_step >= DAY else dates.date_time(onset)
            pieces.append(Piece(f", since about {date}"))
    pieces += [Piece(f"; also on {more_routes(len(more))}")] if more else []
    pieces += [Piece("; the alert is still open but recovering")] if recovering else []
    query = "" if first.route is None else f"&route={quote_segment(first.route)}"
    began = (first.alert and first.alert.onset) or situation.onsets.get(first.route or "")
    window = "window=24h" if began is None else urlencode({"since": began.isoformat()})
    pieces += [Piece(". "), link("See the worst answers", f"/answers?{window}&sort=lowest{query}")]
    for alert_id in dict.fromkeys(decline.alert.id for decline in declines if decline.alert is not None):
        pieces += [Piece(" or "), link("the alert", f"/alerts/{quote_segment(alert_id)}")]
    return Verdict(
        state="recovering" if recovering else "worse",
        pieces=tuple(pieces),
        routes=tuple(decline.route for decline in declines if decline.route is not None),
        other_alerts=tuple(alert for alert in situation.alerts if alert.id not in mentioned),
        began=began,
        began_on=first.route,
        lacks_alert=not mentioned,
    )


def _period(decline: _Decline, dates: DateFormatter) -> str:
    """Return the period that the later level covers, in words."""
    alert = decline.alert
    if alert is None or isinstance(decline.levels[1], Estimate):
        return "Last 24 h"
    if alert.onset is not None:
        return f"Since about {dates.date_time(alert.onset)}"
    if alert.window is not None:
        return f"In the {format_seconds(alert.window)} before {dates.date_time(alert.evaluated_at)}"
    return f"Until {dates.date_time(alert.evaluated_at)}"


def _is_recovering(decline: _Decline, situation: Situation) -> bool:
    """Return whether the alert is still open although scores are recovering."""
    if decline.alert is None:
        return False
    line = decline.comparison
    is_lower = line is not None and line.finding in {"dropped", "lower"} and _is_large_enough(line, situation)
    is_back = line is not None and line.is_comparable and not is_lower
    return decline.alert.state == "recovering" or (is_back and not decline.is_about_share)


def _better(situation: Situation, rises: Sequence[Comparison]) -> Verdict:
    routes = sorted((line for line in rises if line.route is not None), key=lambda line: -(line.difference or 0.0))
    first = routes[0] if routes else rises[0]
    pieces = [strong(f"{scorer_title(situation.scorer)} rose on"), Piece(" "), route_or_service(first.route)]
    if first.after is not None and first.before is not None:
        dates = DateFormatter(situation.now, situation.zone)
        reference = describe_reference(first.before, situation.reference_period, dates)
        pieces.append(Piece(f". Last 24 h: {describe_mean(first.after)}, compared with {reference}"))
    pieces += [Piece(f"; also on {more_routes(len(routes) - 1)}")] if len(routes) > 1 else []
    names = tuple(line.route for line in routes if line.route is not None)
    return Verdict(state="better", pieces=(*pieces, Piece(".")), routes=names, other_alerts=tuple(situation.alerts))


def _unchanged(situation: Situation, current: Estimate) -> Verdict:
    reference, unknown = "", ""
    if situation.reference is not None:
        dates = DateFormatter(situation.now, situation.zone)
        described = describe_reference(situation.reference, situation.reference_period, dates)
        reference = f", compared with {described}"
    few = sum(not line.is_comparable and line.after is not None for line in situation.routes)
    if few:
        unknown = f"; {few} of {len(situation.routes)} routes had too few answers to compare"
    place = "any route" if situation.route is None else "this route"
    text = f" on {place} in the last 24 h: {describe_mean(current)}{reference}{unknown}."
    return _plain("unchanged", situation, strong("No clear change"), Piece(text))


def _without_comparison(situation: Situation, current: Estimate) -> Verdict:
    lines = situation.comparisons.routes if situation.comparisons else ()
    if any(line.finding == "judge_changed" for line in lines):
        mean = describe_mean(current)
        text = (
            f"Mean with the new judge in the last 24 h: {mean}." if current.has_min_samples else f"New judge: {mean}."
        )
        return _plain(
            "judge_changed",
            situation,
            strong("The judge changed, so scores cannot be compared yet."),
            Piece(f" {text}"),
        )
    if not current.has_min_samples:
        counts = not_enough_data(current).removeprefix(_NOT_ENOUGH_DATA)
        return _plain("few", situation, strong("Not enough data"), Piece(f" in the last 24 h{counts}."))
    reference = situation.reference
    earlier = "" if reference is None or reference.has_min_samples else f": {not_enough_data(reference)} before"
    text = f" {describe_mean(current)} in the last 24 h; there is nothing to compare it with yet{earlier}."
    return _plain("new", situation, strong(f"{scorer_title(situation.scorer)} is"), Piece(text))


def _unscored(situation: Situation) -> Iterator[Piece]:
    """Yield pieces with the number of answers, why none was scored, and the next step."""
    by_scorer: dict[str, _Outcomes] = {}
    for coverage in situation.coverage:
        if situation.scorer is None or coverage.scorer in {situation.scorer, ""}:
            outcomes = by_scorer.setdefault(coverage.scorer, _Outcomes())
            outcomes.seen += coverage.seen
            outcomes.pending += coverage.pending
            outcomes.reasons.update(coverage.failed)
            outcomes.reasons.update(coverage.skipped)
    largest = max(by_scorer.values(), key=lambda outcomes: outcomes.seen, default=_Outcomes())
    if largest.seen == 1:
        yield strong("One answer arrived in the last 24 h and was not scored:")
    else:
        answers = f"{largest.seen:,} answers" if largest.seen else "Answers"  # not counted yet
        yield strong(f"{answers} arrived in the last 24 h and none was scored:")
    yield Piece(" ")
    reason = situation.retry_reason
    if reason is None and largest.reasons and largest.pending <= largest.reasons.total():
        reason = min(largest.reasons, key=lambda name: (-largest.reasons[name], name))
    if reason is not None:
        since = ""
        if situation.scored_at is not None:
            since = f" (no scores since {DateFormatter(situation.now, situation.zone).date_time(situation.scored_at)})"
        yield Piece(_CAUSES.get(reason, f"{reason.replace('_', ' ')}{{since}}.").format(since=since) + " ")
    elif not situation.has_judge:
        yield Piece(f"{_NO_JUDGE} ")
    elif not situation.has_worker:
        yield Piece("no worker is running. Run germane worker. ")
    else:
        yield Piece(
            f"{largest.pending:,} are waiting to be scored. " if largest.pending else "they have not been sampled yet. "
        )
    yield link("Open the worker page", "/worker")


def _plain(state: VerdictState, situation: Situation, *pieces: Piece) -> Verdict:
    is_low = situation.current is not None and situation.current.low_share > 0.5
    return Verdict(state=state, pieces=pieces, other_alerts=tuple(situation.alerts), is_low=is_low)
