"""The drop detector. It fires when scores drop and resolves when they recover, at a given false-alert rate.

The evidence from all streams is averaged, so any number of routes shares one false-alert budget. With N scores per day,
the detector fires if the evidence exceeds A = 365 N / (false alerts per year). While it is firing, it collects only
evidence of recovery. After it has resolved, it starts over.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, Literal

import numpy as np

from germane.alerting.detector.bet_grid import BETS_PER_STATISTIC, BetGrid
from germane.alerting.detector.drop_evidence import (
    STATISTICS,
    Contributor,
    RecoveryEvidence,
    ShiryaevRoberts,
    Transition,
)
from germane.alerting.detector.score_batch import IndexedScores, ScoreBatch
from germane.baseline import Baseline

BLOCK: Final = 2048
"""Maximum number of scores in one vectorized step."""
DAYS_PER_YEAR: Final = 365
CONTRIBUTOR_RANGE: Final = math.log(10)
"""Maximum difference between the strongest log evidence and that of any other contributor to a drop."""


class Detector:
    """Watches one service, scorer and fingerprint against one baseline.

    Args:
        baseline: The baseline. Scores from routes that it does not contain are skipped.
        min_drop: Smallest drop that matters, in (0, 1).
        false_alerts_per_year: Accepted number of false alerts per year; must be above 0.
        state: A result of :meth:`state` to continue from. Streams that have joined the baseline since the state was
            stored start without evidence. If a stream has left the baseline, or if its values or ``min_drop`` have
            changed, the detector starts over (see :attr:`restarted`).

    Raises:
        ValueError: A parameter is out of range.
    """

    def __init__(
        self,
        baseline: Baseline,
        *,
        min_drop: float = 0.05,
        false_alerts_per_year: float = 1.0,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        if not 0 < false_alerts_per_year < math.inf:
            raise ValueError(f"false_alerts_per_year must be a finite number above 0, not {false_alerts_per_year}")
        self._baseline = baseline
        self._grid = BetGrid(baseline, min_drop)
        self._drop_evidence = ShiryaevRoberts(self._grid)
        self._digests: dict[int, str] = {}
        self._recovery: RecoveryEvidence | None = None
        self._onset = 0.0
        scores_per_alert = DAYS_PER_YEAR * baseline.scores_per_day / false_alerts_per_year
        self._nominal_threshold = math.log(scores_per_alert) if scores_per_alert > 0 else -math.inf
        self._threshold = self._nominal_threshold
        self.restarted = state is not None and not self._restore(state)
        """Whether the detector started over because the state that it was given did not match."""

    @property
    def firing(self) -> bool:
        """Whether the detector is firing."""
        return self._recovery is not None

    @property
    def contributors(self) -> tuple[Contributor, ...]:
        """Streams and statistics that contribute most of the evidence for the current drop, strongest first."""
        return self._recovery.contributors if self._recovery else ()

    @property
    def log_evidence(self) -> float:
        """Logarithm of the average evidence; -inf before the first score, and constant while the detector is firing."""
        return self._drop_evidence.log_evidence()

    @property
    def threshold(self) -> float:
        """Logarithm of the evidence above which the detector fires. Never decreases until the detector resolves."""
        return self._threshold

    def process(self, batch: ScoreBatch) -> list[Transition]:
        """Process scores in order of arrival, and return the transitions in order."""
        scores, transitions, done = self._grid.index_scores(batch), list[Transition](), 0
        while done < len(scores):
            block = scores.part(done, done + BLOCK)
            if self._recovery is None:
                processed, fires = self._drop_evidence.advance(block, self._threshold)
                if fires:
                    self._onset = self._drop_evidence.onset()
                    self._recovery = RecoveryEvidence(self._grid, self._strongest_contributors())
                    transitions.append(self._transition("firing", block, processed - 1))
            else:
                processed, resolves = self._recovery.advance(block)
                if resolves:
                    # Before the reset, because the transition states the contributors of the drop that ends.
                    transitions.append(self._transition("resolved", block, processed - 1))
                    self._recovery = None
                    self._drop_evidence.reset()
                    self._threshold = self._nominal_threshold
            done += processed
        return transitions

    def _strongest_contributors(self) -> list[Contributor]:
        strength = self._drop_evidence.log_strength()  # by stream and statistic
        weakest = strength.max() - CONTRIBUTOR_RANGE
        streams, statistics = np.unravel_index(np.argsort(-strength, axis=None, kind="stable"), strength.shape)
        names = [None, *self._grid.routes]  # the first stream is the whole service
        places = zip(streams.tolist(), statistics.tolist(), strict=True)
        return [Contributor(names[at[0]], STATISTICS[at[1]]) for at in places if strength[at] >= weakest]

    def _transition(self, state: Literal["firing", "resolved"], block: IndexedScores, last: int) -> Transition:
        """Return the change of state after the score at ``last`` in the block."""
        index, at = int(block.positions[last]), float(block.times[last])
        return Transition(index=index, at=at, state=state, onset=self._onset, contributors=self.contributors)

    def state(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data, about 1 kB per stream."""
        drop, recovery = self._drop_evidence, self._recovery
        return {
            "threshold": _from_log(self._threshold),
            "streams": [
                {
                    "route": self._grid.routes[stream - 1] if stream else None,
                    "numbers": self._digest(stream),
                    "logs": [[_from_log(value) for value in logs] for logs in drop.logs[stream].tolist()],
                    "rises": drop.rises[stream].tolist(),
                    "starts": drop.starts[stream].tolist(),
                }
                for stream in range(drop.streams)
            ],
            "firing": recovery
            and {
                "onset": self._onset,
                "contributors": [asdict(contributor) for contributor in recovery.contributors],
                "recovery": recovery.evidence,
            },
        }

    def _digest(self, stream: int) -> str:
        """Return a digest of the values that a stream's nulls and bets are derived from.

        For the whole service, the digest covers only the names and ``min_drop``, because its values follow from the
        routes. Therefore, the whole service keeps its evidence when a route joins.
        """
        if stream not in self._digests:
            baseline = self._baseline
            names = [baseline.service, baseline.scorer, baseline.fingerprint, self._grid.min_drop]
            numbers = asdict(self._grid.route_baselines[stream - 1]) if stream else {}
            # A database may return a float that has no fractional part as an integer.
            numbers = {name: float(value) for name, value in numbers.items()}
            data = json.dumps([names, numbers], sort_keys=True)
            self._digests[stream] = hashlib.sha256(data.encode()).hexdigest()[:16]
        return self._digests[stream]

    def _restore(self, state: Mapping[str, Any]) -> bool:
        """Continue from a state. If it does not match, change nothing and return False."""
        index: dict[str | None, int] = {None: 0} | {name: at + 1 for at, name in enumerate(self._grid.routes)}
        streams = state["streams"]
        if any(item["route"] not in index or item["numbers"] != self._digest(index[item["route"]]) for item in streams):
            return False
        for stream in streams:
            at = index[stream["route"]]
            logs = np.array([[_to_log(value) for value in values] for values in stream["logs"]])
            self._drop_evidence.logs[at] = logs.reshape(len(STATISTICS), BETS_PER_STATISTIC)
            self._drop_evidence.rises[at] = stream["rises"]
            self._drop_evidence.starts[at] = stream["starts"]
        self._threshold = max(self._nominal_threshold, _to_log(state["threshold"]))
        if firing := state["firing"]:
            self._onset = firing["onset"]
            contributors = [Contributor(**contributor) for contributor in firing["contributors"]]
            self._recovery = RecoveryEvidence(self._grid, contributors, firing["recovery"])
        return True


def _from_log(value: float) -> float | None:
    """Convert -inf, which JSON cannot represent, to None."""
    return None if value == -math.inf else value


def _to_log(value: float | None) -> float:
    return -math.inf if value is None else value
