"""Checks of alert channels, sinks, baselines and rules."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from germane import alerting, sanitize, sinks
from germane.cli.commands.doctor.finding import Finding
from germane.cli.core.render import describe_learning
from germane.settings import BUILTIN_CHANNELS
from germane.storage import NOTIFICATION, SINK, QueueStatus

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import TrackingStore

NORMAL_SINK_DELAY: Final = timedelta(minutes=1)
"""Time after which exchanges that wait for a sink without an error, or for their spans, are a problem."""
RULE_CHECK_WINDOW: Final = timedelta(days=14)
"""Rules are checked against the scores in this window."""


def check_channels(store: TrackingStore, settings: Settings) -> Iterator[Finding]:
    """Check each channel that is configured, or has pending or undelivered notifications."""
    queues = {queue.target: queue for queue in store.outbox.list_queues(NOTIFICATION)}
    rule_names = [rule.name for rule in settings.active_rules]
    for name, channel in alerting.build_channels(settings).items():
        subject, queue, problem = f"channel {name}", queues.pop(name, None), channel.config_error
        if problem is not None:
            fix = f"configure it on the host that sends alerts, then run on that host: germane alerts test {name}"
            yield Finding(subject, "warning", f"cannot send from this host: {problem}", fix)
        elif queue is None or not (queue.waiting or queue.undelivered):
            yield Finding(subject, "ok", f"sends to {channel.destination}; no pending notifications")
        if queue is not None:
            fix = (
                "start a process in which this channel is configured correctly"
                if problem
                else "fix the reported error, or check the receiver"
            )
            yield from _check_queue(queue, fix)
        for pattern in settings.channels[name].rules:
            if not any(fnmatchcase(rule, pattern) for rule in rule_names):
                known = ", ".join(sanitize.line(rule, 40) for rule in rule_names)
                message = f"its rule pattern {sanitize.line(pattern, 40)!r} matches no active rule"
                yield Finding(subject, "warning", message, f"active rules: {known}")
    for name, queue in queues.items():
        fix = (
            "start the process that sends to this channel"
            if name in BUILTIN_CHANNELS
            else "this channel is no longer configured; configure it again under the same name"
        )
        yield from _check_queue(queue, fix)


def _check_queue(queue: QueueStatus, fix: str) -> Iterator[Finding]:
    subject = f"channel {queue.target}"
    if queue.waiting:
        count = sanitize.count_noun(queue.waiting, "pending notification")
        error = "" if queue.retry_error is None else f": {queue.retry_error}"
        yield Finding(
            subject, "warning", f"{count}, the oldest since {queue.waiting_since:%Y-%m-%d %H:%M} UTC{error}", fix
        )
    if queue.undelivered:
        count = sanitize.count_noun(queue.undelivered, "undelivered notification")
        latest = f"{queue.last_undelivered_at:%Y-%m-%d %H:%M} UTC"
        message = f"{count} in the last week, the latest at {latest}: {queue.last_undelivered_error}"
        yield Finding(
            subject,
            "error",
            message,
            f"fix the cause, then run: germane alerts respond resend --channel {queue.target}",
        )


def check_sinks(store: TrackingStore, settings: Settings) -> Iterator[Finding]:
    """Check each sink that is configured or has waiting exchanges, with one finding for whatever is wrong with it."""
    queues = {queue.target: queue for queue in store.outbox.list_queues(SINK)}
    built = sinks.build_sinks(settings) if settings.sinks else {}
    for name in sorted({*built, *queues}):
        queue = queues.get(name, QueueStatus(target=name))
        problem = built[name].config_error if name in built else "it is not configured, but scores wait for it"
        waiting = sanitize.count_noun(queue.waiting, "exchange")
        if problem is not None:
            fix = "configure it on the hosts that run germane.start() or germane worker"
            yield Finding(f"sink {name}", "warning", f"cannot write from this host: {problem}", fix)
        elif queue.waiting_since is not None and (
            queue.retry_error not in {None, sinks.MISSING_SPAN} or store.now() - queue.waiting_since > NORMAL_SINK_DELAY
        ):
            error = f": {queue.retry_error}" if queue.retry_error else ""
            fix = f"germane sinks test {name}" if error else "start a worker that has this sink in its settings"
            message = f"{waiting} waiting since {queue.waiting_since:%Y-%m-%d %H:%M} UTC{error}"
            yield Finding(f"sink {name}", "warning", message, fix)
        elif queue.undelivered:
            count = sanitize.count_noun(queue.undelivered, "exchange")
            message = f"gave up on {count} in the last week: {queue.last_undelivered_error}"
            yield Finding(f"sink {name}", "warning", message, "germane sinks status")
        else:
            yield Finding(f"sink {name}", "ok", f"writes to {built[name].destination}; {waiting} waiting")


def check_learning(store: TrackingStore) -> Iterator[Finding]:
    """List baselines that are still being learned. Small drops are not detected until learning ends."""
    fix = "wait, or create the baseline now: germane baseline import FILE, or germane baseline import --since 14d"
    for version in store.baselines.list_learning():
        subject = f"baseline of {version.key.service}"
        if version.provisional is None:
            yield Finding(subject, "warning", describe_learning(version, store.now()), fix)
        else:
            yield Finding(subject, "ok", describe_learning(version, store.now()))


def check_rules(store: TrackingStore, settings: Settings) -> Iterator[Finding]:
    """Report rules that match no recent score, often because of a typo. Such rules never fire."""
    since = store.now() - RULE_CHECK_WINDOW
    summaries = store.trends.summary(since=since, histograms=False) if settings.rules else []
    scorers = {summary.scorer for summary in summaries}
    for rule in settings.rules if summaries else ():
        if not rule.enabled:
            continue
        subject = f"rule {sanitize.line(rule.name, 40)}"
        if rule.scorer not in {None, *scorers}:
            message = f"no scores from {sanitize.line(rule.scorer, 40)} in the last two weeks"
            yield Finding(subject, "warning", message, f"scorers with scores: {', '.join(sorted(scorers))}")
        elif not any(rule.matches_route(summary.route) for summary in summaries):
            routes = ", ".join(sanitize.line(route, 40) for route in rule.routes)
            message = f"no route with scores in the last two weeks matches {routes}"
            yield Finding(subject, "warning", message, "correct the rule's `routes`")
