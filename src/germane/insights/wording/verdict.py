"""The sentences of the verdict on the last 24 hours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

from germane import alerting, sanitize
from germane.insights.formatting import (
    DateFormatter,
    describe_alert,
    format_seconds,
    format_whole_hours,
    quote_segment,
    scorer_title,
)
from germane.insights.situation import Situation
from germane.insights.verdict import Movement, Unscored, Verdict, VerdictState
from germane.insights.wording.phrases import (
    describe_counts,
    describe_mean,
    describe_reference,
    not_enough_data,
)
from germane.insights.wording.pieces import Piece, Sentence, fill_sentence, route_or_service
from germane.phrasing import fill
from germane.score import UnscoredReason
from germane.statistics import Estimate

_END: Final = (
    "[; also on {more}][; {recovering}][; not judged: {unjudged}]. [{deploy}. ][Likely cause: {cause}. ]"
    "[The drop is largest where {attribute}. ]{answers:See the worst answers}{alerts}"
)
VERDICTS: Final[Mapping[str, str]] = {
    "worse": (
        "**{lead}{title} fell{most} on** {place}[. {period}: {after}][, compared with {before}][, since about {onset}]"
    )
    + _END,
    "low_score_rate": "**{lead}{More} answers have low scores on** {place}: {message}" + _END,
    "noncommittal_rate": "**{lead}{More} answers are refusals on** {place}: {message}" + _END,
    "better": (
        "**{lead}{title} rose{most} on** {place}. {period}: {after}, compared with {before}[; also on {more}]"
        "[; not judged: {unjudged}]."
    ),
    "unchanged": (
        "**No clear change** on {extent} in the last 24 h[: {current}][, compared with {reference}]"
        "[; {few} of {routes} routes had too few answers to compare][; not judged: {unjudged}]."
    ),
    "new": (
        "[{service}: ]**{title} is** {own} in the last 24 h; there is nothing to compare it with yet"
        "[: {few_before} before][; not judged: {unjudged}]."
    ),
    "judge_changed": (
        "[{service}: ]**The judge changed, so scores cannot be compared yet.** {new_judge}: {own}"
        "[; not judged: {unjudged}]."
    ),
    "few": "[{service}: ]**Not enough data** in the last 24 h ({counts})[; not judged: {unjudged}].",
    "unscored": "[{service}: ]**{unscored}:** {cause}[ Not judged: {unjudged}.] {worker:Open the worker page}",
    "stale": (
        "**The newest answer is {age} old.** No answer has arrived since {answered_at}. Check that the application "
        "runs and writes to this database: run germane doctor. {worker:Open the worker page}"
    ),
    "silent": "**No answer arrived {source} in the last 24 h.**[ Not judged: {unjudged}.]",
    "empty": "**No answer has been captured yet.** {start:Instrument your application}",
}
"""Sentences by state, or by the type of the alert for alerts about a share of answers."""
UNJUDGED: Final[Mapping[VerdictState, str]] = {
    "unscored": "no answer was scored",
    "judge_changed": "the judge changed",
    "new": "nothing to compare with yet",
    "few": "not enough data",
    "stale": "no answer in the last 24 h",
    "silent": "no answer in the last 24 h",
    "empty": "no answer yet",
}
"""Why the answers of a service cannot be compared, in a list of services."""
MAX_OTHERS: Final = 3
"""Maximum number of places other than that of the largest change that a sentence names."""
MAX_UNJUDGED: Final = 3
"""Maximum number of services in that list."""
PERIODS: Final[Mapping[str, str]] = {
    "day": "Last {hours}",
    "onset": "Since about {onset}",
    "window": "In the {window} before {evaluated_at}",
    "evaluation": "Until {evaluated_at}",
}
"""The period that a level covers. See :attr:`Movement.period`."""
UNSCORED: Final = "{answers} arrived in the last 24 h and none was scored"
UNSCORED_ONE: Final = "One answer arrived in the last 24 h and was not scored"
RECOVERING: Final = "the alert is still open but recovering"
CAUSES: Final[Mapping[str, str]] = {
    "no_judge": (
        "no judge is configured. Set OPENAI_API_KEY or OPENAI_BASE_URL, or configure scorers that need no judge."
    ),
    "no_worker": "no worker is running. Run germane worker.",
    "pending": "{pending:,} are waiting to be scored.",
    "undecided": "they have not been sampled yet.",
    UnscoredReason.NOT_SAMPLED: "no answer was sampled. Raise sample_rate, or set a budget.",
    UnscoredReason.FILTERED: "a filter excludes them, or they were cut short. Check filters, and read whole streams.",
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
"""Why no answer was scored, with the remedy. See :attr:`Unscored.reason`."""


Values = dict[str, object]
"""Values of a template, by name."""


def verdict_sentence(verdict: Verdict) -> Sentence:
    """Return the verdict in one sentence."""
    dates = DateFormatter(verdict.situation.now, verdict.situation.zone)
    values = _situation_values(verdict, dates) | {"unjudged": _unjudged(verdict)}
    kind: str = "worse" if verdict.state == "recovering" else verdict.state
    if verdict.movements:
        first = verdict.movements[0]
        values |= _movement_values(verdict, first, dates)
        kind = first.alert.type if first.alert is not None and first.is_about_share else kind
    if verdict.unscored is not None:
        values |= _unscored_values(verdict.unscored, verdict.situation, dates)
    return fill_sentence(VERDICTS[kind], **values)


def report_sentence(verdict: Verdict) -> str:
    """Return the verdict for a file, in which links to dashboard pages do not work."""
    text = "".join(piece.text for piece in verdict_sentence(verdict) if piece.kind != "link")
    return re.sub(r"(\s+or)*\s*$", "", text)


def _unjudged(verdict: Verdict) -> str | None:
    """Return the services whose answers cannot be compared, such as "shop (not enough data) and 2 more services"."""
    parts = [f"{sanitize.line(situation.service, 60)} ({UNJUDGED[state]})" for situation, state in verdict.unjudged]
    more = len(parts) - MAX_UNJUDGED
    shown = ", ".join(parts[:MAX_UNJUDGED])
    return f"{shown} and {sanitize.count_noun(more, 'more service')}" if more > 0 else shown or None


def _situation_values(verdict: Verdict, dates: DateFormatter) -> Values:
    situation = verdict.situation
    current, reference, answered_at = situation.current, situation.reference, situation.answered_at
    has_enough = current is not None and current.has_min_samples
    is_one = len(verdict.situations) == len(verdict.unjudged) + 1
    service = sanitize.line(situation.service, 60) if situation.is_named and situation.service else None
    if is_one:
        means: Values = {
            "current": current and describe_mean(current),
            "reference": reference and describe_reference(reference, situation.reference_period, dates),
        }
    else:  # means of several services are never averaged
        means = {}
    return means | {
        "title": scorer_title(situation.scorer),
        "extent": _extent(verdict, service if is_one else None),
        "service": service,
        "source": "on this route" if situation.route is not None else f"from {service}",
        "own": current and describe_mean(current),
        "counts": current and describe_counts(current),
        "new_judge": "Mean with the new judge in the last 24 h" if has_enough else "New judge",
        "few_before": None if reference is None or reference.has_min_samples else not_enough_data(reference),
        "few": verdict.n_few or None,
        "routes": f"{verdict.n_routes:,}",
        "answered_at": answered_at and dates.date_time(answered_at),
        "age": answered_at and format_whole_hours(situation.now - answered_at),
        "worker": "/worker",
        "start": "/start",
    }


def _extent(verdict: Verdict, service: str | None) -> str:
    """Return the routes that were compared, such as "any of 20 routes of shop"."""
    if verdict.situation.route is not None:
        return "this route"
    compared = sum(line.is_comparable for one in verdict.situations for line in one.routes)
    extent = "any route" if compared < 2 else f"any of {compared:,} routes"
    return f"{extent} of {service}" if service else extent


def _movement_values(verdict: Verdict, first: Movement, dates: DateFormatter) -> Values:
    """Return the values about the largest change, with links to its answers and alerts."""
    situation, alert, (before, after), began = first.situation, first.alert, first.levels, verdict.began
    onset, deploy = began and dates.date_time(began), verdict.onset and verdict.onset.deploy
    service = situation.service if situation.is_named else None
    alerts = [f"/alerts/{quote_segment(one.id)}" for one in verdict.alerts]
    link = f" or {{alert:the {len(alerts):,} alerts}}" if len(alerts) > 1 else " or {alert:the alert}"
    return (
        _lead_values(verdict, first)
        | {
            "place": route_or_service(first.route, service),
            "period": after and _period(first, dates),
            "after": after and describe_mean(after),
            "before": before
            and describe_reference(before, situation.reference_period if isinstance(before, Estimate) else None, dates),
            "onset": None if after and first.period == "onset" else onset,  # the period states it
            "deploy": deploy and f"{deploy[:1].upper()}{deploy[1:]}",
            "message": alert and describe_alert(alert, dates.date_time).rstrip("."),
            **_cause_values(first),
            "recovering": RECOVERING if verdict.state == "recovering" else None,
            "answers": _answers_path(began, first.route, service),
            "more": _other_places(verdict),
            "alerts": fill_sentence(link, alert=alerts[0] if len(alerts) == 1 else "/alerts") if alerts else (),
        }
    )


def _lead_values(verdict: Verdict, first: Movement) -> Values:
    """Return the beginning of the sentence, which states the number of routes."""
    title, routes = scorer_title(first.situation.scorer), len(verdict.routes)
    if first.situation.route is not None or first.route is None:
        return {"lead": "", "title": title, "More": "More", "most": ""}
    total, word = sanitize.count_noun(verdict.n_routes, "route"), "worse" if verdict.is_worse else "better"
    lead, most = f"{routes:,} of {total} got {word}: ", " most" if len(verdict.movements) > 1 else ""
    return {"lead": lead, "title": title[:1].lower() + title[1:], "More": "more", "most": most}


def _other_places(verdict: Verdict) -> Sentence | None:
    """Return where else answers changed, such as "ask of shop, docs of shop and 3 more"."""
    others, pieces = verdict.movements[1:], list[Piece]()
    for one in others[:MAX_OTHERS]:
        pieces += Piece(", "), *route_or_service(one.route, one.situation.service if one.situation.is_named else None)
    more = [Piece(f" and {len(others) - MAX_OTHERS:,} more")] if len(others) > MAX_OTHERS else []
    return (*pieces[1:], *more) or None


def _answers_path(began: datetime | None, route: str | None, service: str | None) -> str:
    """Return the path of the answers since the onset, lowest score first."""
    since = {"window": "24h"} if began is None else {"since": began.isoformat()}
    query = since | {"sort": "lowest", "route": route, "service": service}
    given = {name: value for name, value in query.items() if value is not None}
    return f"/answers?{urlencode(given, quote_via=quote, errors='replace')}"


def _cause_values(movement: Movement) -> Values:
    """Return the cause that there is evidence for, except what the message of an alert states."""
    explained = movement.situation.explained
    if explained is None or movement.is_about_share:
        return {}
    facts = alerting.alert_facts(explained)
    attribute = next((shift.name for shift in facts.named_shifts if shift.dimension == "attribute"), None)
    cause = facts.cause and alerting.CAUSES[facts.cause]
    return {"cause": cause, "attribute": attribute and sanitize.line(attribute, 60)}


def _period(movement: Movement, dates: DateFormatter) -> str:
    alert = movement.alert
    hours = movement.hours
    if alert is None:
        return fill(PERIODS[movement.period], hours=hours)
    times = {"onset": alert.onset, "evaluated_at": alert.evaluated_at}
    shown = {name: moment and dates.date_time(moment) for name, moment in times.items()}
    return fill(PERIODS[movement.period], **shown, hours=hours, window=format_seconds(alert.window or 0.0))


def _unscored_values(unscored: Unscored, situation: Situation, dates: DateFormatter) -> Values:
    scored_at = situation.scored_at and dates.date_time(situation.scored_at)
    cause = CAUSES.get(unscored.reason, f"{unscored.reason.replace('_', ' ')}{{since}}.")
    since = fill("[ (no scores since {scored_at})]", scored_at=scored_at)
    answers = "Answers" if unscored.seen == 0 else f"{unscored.seen:,} answers"
    return {
        "unscored": UNSCORED_ONE if unscored.seen == 1 else UNSCORED.format(answers=answers),
        "cause": cause.format(since=since, pending=unscored.pending),
    }
