"""What people say about the answers of a window: the mean label, estimated from a sample of labels and all scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, reduce
from itertools import combinations
from math import isnan, prod
from operator import add
from typing import TYPE_CHECKING, Final, Literal

from germane.annotation import EXTERNAL_FINGERPRINT
from germane.score import MIN_SAMPLES
from germane.settings import SCORE_RULES
from germane.storage import AnswerFilter, DrawnCounts, DrawnLabel, LabelWave, TrackingStore

if TYPE_CHECKING:
    from germane.alert import Alert
    from germane.insights.charts import LabeledBand
    from germane.statistics import LabeledMean, WeightedSums

MAX_WAVES: Final = 50
"""Maximum number of waves, newest first, that are searched for an estimate."""
MAX_ALERTS: Final = 200
"""Maximum number of alerts that are searched for one that outdates an estimate."""
Stratum = tuple[str, str]
"""A service and a route."""
Outdated = Literal["drop", "judge_changed", "judge_drift"]
"""What happened after the last label, so that the estimate may no longer describe current answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabeledWindow:
    """A window of which people have labeled a random sample of answers, for a route, a service or all services."""

    service: str | None
    """None for all services of the sample."""
    route: str | None
    """None for all routes of the sample."""
    services: Sequence[str]
    """The services of which answers were drawn."""
    scorer: str
    fingerprint: str
    since: datetime
    """UTC."""
    until: datetime
    waves: Sequence[str]
    """Ids of the waves, oldest first."""
    counts: DrawnCounts
    """The drawn answers by state."""
    n_scores: int
    """Number of scores in the window."""
    estimate: LabeledMean | None
    """None with fewer than 20 labels, and before the waves are finished: an estimate that people watch while they label
    tempts them to stop at a value that they like."""
    is_finished: bool
    """Whether no answer of the waves waits for a person."""
    kappa: tuple[float, int] | None = None
    """Cohen's kappa of the two people with the most labels in common, and the number of these; None with fewer than 20
    such labels."""
    left_out: int = 0
    """Number of labels of answers from before a drift of the judge, which do not count."""
    replaced: int = 0
    """Number of labels of answers whose scores have been replaced or deleted, which do not count."""
    last_label_at: datetime | None = None
    outdated: Outdated | None = None

    @property
    def labels_to_halve(self) -> int | None:
        """Number of additional labels that would halve the interval; None if more labels cannot do this."""
        if self.estimate is None:
            return None
        from germane.statistics import labels_for

        total = labels_for(self.estimate.half_width / 2, self.estimate)
        return None if total is None else total - self.estimate.n


def load_labeled_window(
    store: TrackingStore,
    *,
    scorer: str | None = None,
    service: str | None = None,
    route: str | None = None,
    wave: str | None = None,
) -> LabeledWindow | None:
    """Return the newest window with an estimate for a place, or else the newest window of which answers were drawn.

    None stands for every scorer, all services and all routes. A service or a route has an estimate of its own from 20
    labels of its own: the judge errs differently elsewhere. With ``wave``, only its window is considered.
    """
    first: LabeledWindow | None = None
    for labeled in _load_windows(store, scorer):
        found = labeled.window(service, route) if wave in {None, *labeled.waves} else None
        if found is not None and found.estimate is not None:
            return found
        first = first or found
    return first


def load_estimates(store: TrackingStore) -> list[LabeledWindow]:
    """Return the newest estimate of each scorer, service and route that has one. An empty route is a whole service."""
    found: dict[tuple[str, str, str | None], LabeledWindow] = {}
    for labeled in _load_windows(store, None):
        for place in sorted(
            {(one.service, None) for one in labeled.drawn} | {(one.service, one.route) for one in labeled.drawn},
            key=str,
        ):
            window = labeled.window(*place)
            if window is not None and window.estimate is not None:
                found.setdefault((window.scorer, *place), window)
    return list(found.values())


class _LabeledAnswers:
    """The waves of one window with their labels, and the sums over its scores by service and route.

    If any wave is finished, the others do not count yet.
    """

    def __init__(self, store: TrackingStore, waves: Sequence[LabelWave]) -> None:
        finished = [wave for wave in waves if store.draws.next_answer(wave.id) is None]
        self._is_finished, self.waves = bool(finished), [wave.id for wave in finished or waves]
        self.drawn = [counts for wave in finished or waves for counts in wave.routes]
        self._store, self._newest = store, waves[-1]
        self._names = {"scorer": self._newest.scorer, "fingerprint": self._newest.fingerprint}

    @cached_property
    def _alerts(self) -> list[Alert]:
        """The alerts about the scorer since the beginning of the window."""
        found = self._store.alerts.search(since=self._newest.since, limit=MAX_ALERTS)
        return [alert for alert in found if alert.scorer == self._newest.scorer]

    @cached_property
    def _since(self) -> datetime:
        """The beginning of the window or, if the judge has drifted in it, the first time after that."""
        drifts = [
            alert.onset
            for alert in self._alerts
            if alert.type == "judge_drift" and alert.fingerprint == self._newest.fingerprint and alert.onset is not None
        ]
        return max([self._newest.since, *(onset for onset in drifts if onset < self._newest.until)])

    @cached_property
    def _sums(self) -> dict[Stratum, WeightedSums]:
        return self._store.trends.score_sums(**self._names, since=self._since, until=self._newest.until)

    @cached_property
    def _labels(self) -> list[DrawnLabel]:
        return self._store.draws.list_labels(self.waves)

    def window(self, service: str | None, route: str | None) -> LabeledWindow | None:
        """Return the window for a place, or None if no answer there was drawn."""

        def is_inside(place: DrawnCounts | DrawnLabel) -> bool:
            return service in {None, place.service} and route in {None, place.route}

        drawn = list(filter(is_inside, self.drawn))
        if not drawn:
            return None
        labels, counts = list(filter(is_inside, self._labels)), replace(self._newest, routes=drawn).total
        given, labels = labels, [label for label in labels if (label.answered_at or self._since) >= self._since]
        # Answers of a route without a label are not part of the statement.
        labeled = {(label.service, label.route) for label in labels if label.value is not None}
        sums = {place: self._sums[place] for place in labeled & self._sums.keys()}
        last = max((label.created_at for label in labels), default=None)
        return LabeledWindow(
            service=service,
            route=route,
            services=sorted({one.service for one in drawn}),
            **self._names,
            since=self._since,
            until=self._newest.until,
            waves=self.waves,
            counts=counts,
            n_scores=sum(one.n for one in sums.values()),
            is_finished=self._is_finished,
            estimate=_estimate(labels, sums) if self._is_finished else None,
            kappa=_kappa(labels),
            left_out=len(given) - len(labels),
            replaced=sum(label.value is None for label in labels),
            last_label_at=last,
            outdated=None if last is None else self._find_outdated(drawn, route, last),
        )

    def _find_outdated(self, drawn: Iterable[DrawnCounts], route: str | None, last: datetime) -> Outdated | None:
        """Return what happened after the last label."""
        services = {place.service for place in drawn}
        fired = [
            alert
            for alert in self._alerts
            if alert.fired_at is not None and alert.fired_at > last and (not alert.service or alert.service in services)
        ]
        if any(alert.type == "judge_drift" and (alert.onset or last) >= self._newest.until for alert in fired):
            return "judge_drift"
        newest = AnswerFilter(scorer=self._newest.scorer)
        for service in services:
            found = self._store.answers.search(replace(newest, service=service), sort="newest", limit=1).answers
            if any(
                answer.score is not None
                and answer.score.fingerprint not in {self._newest.fingerprint, EXTERNAL_FINGERPRINT}
                for answer in found
            ):
                return "judge_changed"
        is_drop = any(alert.type in SCORE_RULES and (not route or alert.route in {None, route}) for alert in fired)
        return "drop" if is_drop else None


def _load_windows(store: TrackingStore, scorer: str | None) -> Iterator[_LabeledAnswers]:
    """Yield the windows of which answers were drawn, the one with the newest wave first."""
    windows: dict[tuple[str, str, datetime, datetime], list[LabelWave]] = {}
    for wave in store.draws.list_waves(scorer=scorer, limit=MAX_WAVES):
        windows.setdefault((wave.scorer, wave.fingerprint, wave.since, wave.until), []).insert(0, wave)
    for waves in windows.values():
        yield _LabeledAnswers(store, waves)


def _estimate(labels: Iterable[DrawnLabel], sums: dict[Stratum, WeightedSums]) -> LabeledMean | None:
    """Return the estimate from labels of several routes. The labels of a route together stand for all its answers."""
    import numpy as np  # here, because most pages and reports have no labels to estimate from

    from germane.statistics import estimate_labeled_mean

    usable = [label for label in labels if label.value is not None and (label.service, label.route) in sums]
    weights = list(label_weights(usable, sums))
    y, f, v = (
        np.array(values, dtype=np.float64)
        for values in ([label.label for label in usable], [label.value for label in usable], weights)
    )
    return estimate_labeled_mean(y, f, v, reduce(add, sums.values())) if usable else None


def _kappa(labels: Iterable[DrawnLabel]) -> tuple[float, int] | None:
    pairs = defaultdict[tuple[str, str], list[tuple[float, float]]](list)
    for label in labels:
        for first, second in combinations(sorted(label.by_person), 2):
            pairs[first, second].append((label.by_person[first], label.by_person[second]))
    most = max(pairs.values(), key=len, default=[])
    if len(most) < MIN_SAMPLES:
        return None
    from germane.agreement import cohen_kappa

    kappa = cohen_kappa(*zip(*most, strict=True))
    return None if isnan(kappa) else (kappa, len(most))


def label_weights(labels: Sequence[DrawnLabel], sums: dict[Stratum, WeightedSums]) -> Iterator[float]:
    """Yield the number of answers for which each label stands.

    Within a route, all answers of a wave had the same chance of being scored and drawn, except those that were certain
    to be drawn. A wave contains no answer of an earlier one, so after many of them, the chances differ. An answer that
    was skipped is as if it had not been drawn.
    """
    chances = defaultdict[Stratum, dict[str, float]](dict)
    for label in labels:
        of_waves = chances[label.service, label.route]
        of_waves[label.wave] = max(of_waves.get(label.wave, 0.0), label.probability)
    relative, totals = list[float](), defaultdict[Stratum, float](float)
    for label in labels:
        scored, place = label.sampling_probability, (label.service, label.route)
        relative.append(1 / scored / (1 - prod(1 - min(1.0, chance / scored) for chance in chances[place].values())))
        totals[place] += relative[-1]
    for label, weight in zip(labels, relative, strict=True):
        place = (label.service, label.route)
        yield sums[place].sum_w * weight / totals[place]


def labeled_band(window: LabeledWindow | None, scorer: str | None) -> LabeledBand | None:
    """Return the estimate as a band on the chart of its scorer."""
    if window is None or window.estimate is None or window.scorer != scorer:
        return None
    from germane.insights.charts import LabeledBand

    low, high = window.estimate.interval
    return LabeledBand(
        window.since, window.until, low, high, window.estimate.mean, is_outdated=window.outdated is not None
    )
