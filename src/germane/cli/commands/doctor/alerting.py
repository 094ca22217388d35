"""What the doctor finds of channels: whether they can send from here, what waits for them, and what none has taken."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from germane.cli.commands.doctor.finding import Finding
from germane.cli.render import baseline
from germane.sanitize import counted, harmless
from germane.settings import Settings
from germane.settings.channels import OWN

if TYPE_CHECKING:
    from germane.alerting.channels import Channel
    from germane.settings import Settings
    from germane.storage import Lane, Store


def look_at_channels(store: Store, settings: Settings) -> Iterator[Finding]:
    """Tell of each channel that is configured, or for which something waits or has died."""
    from germane.alerting.channels import build

    lanes = {lane.channel: lane for lane in store.lanes()}
    channels = build(settings)
    for name, channel in channels.items():
        yield from _look_at(name, channel, lanes.pop(name, None))
        yield from _look_at_patterns(name, settings)
    for name, lane in lanes.items():
        yield from _look_at_unknown(name, lane)


def _look_at(name: str, channel: Channel, lane: Lane | None) -> Iterator[Finding]:
    about, problem = f"channel {name}", channel.problem
    if problem is not None:
        fix = f"set it where alerts are sent from, and try it: germane alerts test {name}"
        yield Finding(about, "note", f"cannot send from here: {problem}", fix)
    elif lane is None or not (lane.waiting or lane.dead):
        yield Finding(about, "ok", f"sends to {channel.where}; nothing waits")
    if lane is not None:
        fix = (
            "what waits is sent by a process in which that is set"
            if problem
            else "look at what it says, or at the receiver"
        )
        yield from _look_at_lane(about, lane, fix)


def _look_at_patterns(name: str, settings: Settings) -> Iterator[Finding]:
    """Tell of patterns that fit no rule: nobody is ever told by them."""
    rules = [rule.name for rule in settings.watched]
    for pattern in settings.channels[name].rules:
        if not any(fnmatchcase(rule, pattern) for rule in rules):
            known = ", ".join(harmless(rule, 40) for rule in rules)
            message = f"its rules name {harmless(pattern, 40)!r}, which fits none in force"
            yield Finding(f"channel {name}", "note", message, f"there are {known}")


def _look_at_unknown(name: str, lane: Lane) -> Iterator[Finding]:
    fix = "start the process that has it" if name in OWN else "no setting names this channel: name it so again"
    yield from _look_at_lane(f"channel {name}", lane, fix)


def _look_at_lane(about: str, lane: Lane, fix: str) -> Iterator[Finding]:
    if lane.waiting:
        since = f"the oldest since {lane.since:%Y-%m-%d %H:%M} UTC"
        failing = "" if lane.failing is None else f": {lane.failing}"
        yield Finding(about, "note", f"{counted(lane.waiting, 'notification')} waiting, {since}{failing}", fix)
    if lane.dead:
        told = f"{counted(lane.dead, 'notification')} of the last week did not go out"
        message = f"{told}, the last at {lane.died_at:%Y-%m-%d %H:%M} UTC: {lane.error}"
        yield Finding(about, "fault", message, f"mend that, then: germane alerts resend --channel {lane.channel}")


LATELY: Final = timedelta(days=14)
"""What was scored within it a rule may be about."""

FIX = "wait, or seed it: germane baseline import FILE, or --since 14d of what is stored"


def look_at_learning(store: Store) -> Iterator[Finding]:
    """Tell for which scores drops are not noticed yet."""
    for version in store.learning():
        yield Finding(f"baseline of {version.key.service}", "note", baseline.line(version, store.now()), FIX)


def look_at_rules(store: Store, settings: Settings) -> Iterator[Finding]:
    """Tell of rules that look at nothing that was scored of late: by a typing error they would never fire."""
    means = store.summary(since=store.now() - LATELY, histograms=False) if settings.rules else []
    scorers = {mean.scorer for mean in means}
    for rule in settings.rules if means else ():
        if not rule.enabled:
            continue
        about = f"rule {harmless(rule.name, 40)}"
        if rule.scorer not in {None, *scorers}:
            message = f"there is no score of {harmless(rule.scorer, 40)} of the last two weeks"
            yield Finding(about, "note", message, f"there are scores of {', '.join(sorted(scorers))}")
        elif not any(rule.takes(mean.route) for mean in means):
            routes = ", ".join(harmless(route, 40) for route in rule.routes)
            yield Finding(about, "note", f"none of the routes of the last two weeks is {routes}", "correct its routes")
