"""Synthetic services run through germane's learner, limiter, detector and mirrored detector, and the rivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from zlib import crc32

import numpy as np

from germane.alerting.detector.detector import Detector
from germane.alerting.detector.learning import learn_baseline
from germane.alerting.detector.limiter import StreamLimiter, UserLimit
from germane.alerting.detector.score_batch import ScoreBatch
from germane.alerting.drop.baselines import LEARNING_PERIOD, TRAFFIC_FACTOR, is_same_level
from germane.alerting.drop.improvement import mirrored_baseline, mirrored_scores
from germane.baseline import Baseline
from streams.families import Family, Service, part, service
from streams.recipe import BASELINE_DAYS, START, Change, Floats, Stream
from streams.rivals import RIVALS, Hourly

DAY, WEEK = 24, 168
BEGINS: Final = DAY * BASELINE_DAYS
IMPROVED_DAYS = 60


@dataclass(frozen=True, slots=True)
class Watched:
    """germane's alerts and the rivals' statistics for one service."""

    fired: Sequence[float]
    """Hours since the start at which germane's alerts fire."""
    resolved: Sequence[float]
    statistics: dict[str, Floats]
    """The rivals' statistics per hour."""
    onset: float
    end: float
    """Hour at which the change ends; infinite if it does not."""
    weekly_falls: Floats
    """For each week after the baseline, the distance of its mean below the baseline's mean."""
    falls: Sequence[float]
    """For each alert, the distance of the preceding week's mean below the baseline's mean."""

    @property
    def recovery(self) -> float | None:
        """Hours from the end of the change until the alert resolves; None if no alert is firing at the end."""
        before = [at for at in (*self.fired, *self.resolved) if at < self.end]
        if not before or max(before) not in self.fired:
            return None
        return min((at - self.end for at in self.resolved if at >= self.end), default=np.inf)


@dataclass(frozen=True, slots=True)
class Improved:
    """An improvement of 0.08 for three weeks, followed by a fall of 0.07."""

    is_proposed: bool
    is_found: bool
    """Whether germane finds the fall within 7 days, after the proposal is accepted."""
    statistics: dict[str, Floats]
    """The rivals' statistics per hour."""
    end: float
    """Hour of the fall."""


def watch(seed: int, family: Family, days: int, number: int) -> Watched:
    """Simulate one service, and return germane's alerts and the rivals' statistics."""
    random, made = simulated(seed, family, days, number)
    if family.relearns:
        fired, resolved = detected_relearning(random, made, days)
    else:
        baseline, selected = limited(random, made)
        fired, resolved = detected(Detector(baseline), selected, days)
    hourly = Hourly(made.stream)
    falls = hourly.mean - hourly.window(WEEK)[1]
    return Watched(
        fired,
        resolved,
        {name: rule(hourly) for name, rule in RIVALS.items()},
        made.stream.onset,
        made.stream.end,
        falls[WEEK - 1 :: WEEK],
        [float(falls[min(int(at) - BEGINS, len(falls) - 1)]) for at in fired],
    )


def simulated(seed: int, family: Family, days: int, number: int) -> tuple[np.random.Generator, Service]:
    """Return a service of a family, and the random generator for later decisions about it."""
    random = np.random.default_rng([seed, family.per_day, crc32(family.name.encode()), number])
    return random, service(random, family, days)


def limited(random: np.random.Generator, made: Service) -> tuple[Baseline, Stream]:
    """Return the baseline, and the later scores that the detector processes."""
    stream, users = made.stream, made.users
    if users is not None:
        limit = UserLimit()
        kept = np.array([limit.admits(str(user), 3600 * at) for user, at in zip(users, stream.hours, strict=True)])
        stream = part(stream, kept)
    learned = learn(stream, 0, BEGINS)
    return learned, sampled(random, stream, learned, BEGINS)


def sampled(random: np.random.Generator, stream: Stream, baseline: Baseline, since: float) -> Stream:
    """Return the scores after hour ``since`` that a detector with this baseline processes."""
    after = np.flatnonzero(stream.hours >= since)
    names = np.array(stream.names, dtype=object)[stream.routes[after]].tolist()
    draws = random.random(len(after)) / baseline.sampling_rate
    is_sampled = draws < 1
    selected = StreamLimiter(baseline).select(
        np.array(names, dtype=object)[is_sampled].tolist(),
        [None] * int(is_sampled.sum()),
        draws[is_sampled],
        START + 3600 * stream.hours[after][is_sampled],
    )
    return part(stream, after[is_sampled][selected])


def score_batch(stream: Stream, since: float, until: float) -> ScoreBatch:
    """Return the scores in a range of hours in the detector's input format."""
    part = slice(*np.searchsorted(stream.hours, [since, until]))
    routes = np.array(stream.names, dtype=object)[stream.routes[part]].tolist()
    return ScoreBatch(routes, stream.values[part], stream.zeros[part], START + 3600 * stream.hours[part])


def learn(stream: Stream, since: float, until: float, most: float = 1000) -> Baseline:
    """Return a baseline learned from the scores in a range of hours, with at most ``most`` sampled scores per day."""
    batch = score_batch(stream, since, until)
    rate = min(1.0, most / (len(batch) / ((until - since) / DAY)))
    if rate < 1:
        kept = np.random.default_rng(len(batch)).random(len(stream.hours)) < rate
        batch = score_batch(part(stream, kept), since, until)
    return learn_baseline(
        batch, service="shop", scorer="answer_relevancy", fingerprint="simulated", since=START + since * 3600,
        until=START + until * 3600, sampling_rate=rate,
    )  # fmt: skip


def detected(detector: Detector, stream: Stream, days: int) -> tuple[list[float], list[float]]:
    """Return the hours at which a detector fires and resolves."""
    fired: list[float] = []
    resolved: list[float] = []
    for hour in range(BEGINS, DAY * days, WEEK):
        for transition in detector.process(score_batch(stream, hour, min(hour + WEEK, DAY * days))):
            (fired if transition.state == "firing" else resolved).append((transition.at - START) / 3600)
    return fired, resolved


def detected_relearning(random: np.random.Generator, made: Service, days: int) -> tuple[list[float], list[float]]:
    """Return the hours at which the detector fires and resolves if the baseline is relearned as in production.

    Once a day, unless a drop or an improvement is firing, a baseline from the last two weeks replaces the first one if
    traffic was different in both weeks and the level was the same.
    """
    stream = made.stream
    baseline = learn(stream, 0, BEGINS)
    selected = sampled(random, stream, baseline, BEGINS)
    detector = Detector(baseline)
    improvement: Detector | None = Detector(mirrored_baseline(baseline))
    fired: list[float] = []
    resolved: list[float] = []
    for hour in range(BEGINS, DAY * days, DAY):
        if improvement is not None and not detector.firing and not improvement.firing:
            relearned = relearn(stream, baseline, hour)
            if relearned is not None:
                selected = sampled(random, stream, relearned, hour)
                detector, improvement = Detector(relearned), None  # the traffic does not change again
        batch = score_batch(selected, hour, hour + DAY)
        for transition in detector.process(batch):
            (fired if transition.state == "firing" else resolved).append((transition.at - START) / 3600)
        if improvement is not None:
            improvement.process(mirrored_scores(batch))
    return fired, resolved


def relearn(stream: Stream, active: Baseline, hour: int) -> Baseline | None:
    """Return a baseline of all scores before an hour if traffic has grown enough for it to replace the active one."""
    since = hour - round(LEARNING_PERIOD.total_seconds() / 3600)
    if since < BEGINS:
        return None
    edges = np.searchsorted(stream.hours, [since, (since + hour) / 2, hour])
    per_day = np.diff(edges) / ((hour - since) / 2 / DAY)
    factors = per_day / (active.scores_per_day / active.sampling_rate)
    if factors.min() < TRAFFIC_FACTOR:
        return None
    found, recent = learn(stream, 0, hour), min(1000.0, float(per_day.mean()))
    if not is_same_level(active, found, share=1 - active.n / found.n):
        return None
    return replace(
        found.with_traffic(recent / found.scores_per_day), sampling_rate=recent / max(recent, float(per_day.mean()))
    )


def improve(seed: int, per_day: int, number: int) -> Improved:
    """Simulate an improvement of 0.08 on day 16 and a fall of 0.07 on day 37.

    The proposal is accepted as soon as it is made, at the earliest three days after the improvement. The rivals keep
    their first baseline.
    """
    random = np.random.default_rng([seed, per_day, number])
    family = Family("improvement", per_day, 0.01, change=Change(shift=-0.08), lasts=21)
    stream = service(random, family, IMPROVED_DAYS).stream
    fallen = stream.hours >= stream.end
    # After the improvement ends, the level is 0.01 better than before it, which is a fall of 0.07.
    better = np.minimum(1, stream.values + 0.01)
    stream = replace(stream, values=np.where(fallen & (stream.values > 0), better, stream.values))
    hourly = Hourly(stream)
    statistics = {name: rule(hourly) for name, rule in RIVALS.items()}
    baseline = learn(stream, 0, BEGINS)
    mirrored = Detector(mirrored_baseline(baseline))
    for hour in range(BEGINS, int(stream.end), DAY):
        mirrored.process(mirrored_scores(score_batch(stream, hour, hour + DAY)))
        firing = mirrored.state()["firing"]
        if firing and START + 3600 * (hour + DAY) - firing["onset"] >= 3 * 86_400:
            proposed_at, onset = hour + DAY, (firing["onset"] - START) / 3600
            break
    else:
        return Improved(is_proposed=False, is_found=False, statistics=statistics, end=stream.end)
    detector = Detector(learn(stream, onset, proposed_at))
    transitions = detector.process(score_batch(stream, proposed_at, DAY * IMPROVED_DAYS))
    fired = [(each.at - START) / 3600 for each in transitions if each.state == "firing"]
    is_found = any(stream.end <= at < stream.end + WEEK for at in fired)
    return Improved(is_proposed=True, is_found=is_found, statistics=statistics, end=stream.end)
