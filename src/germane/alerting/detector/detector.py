"""Says when the scores of a service dropped, and when that is over; with a false-alarm rate that one may state.

All streams' evidence is averaged, so that any number of routes shares one budget of false alarms. With N scores a day
it fires above A = 365 N / (false alarms a year). Once it has fired it looks for recovery alone, and begins anew after.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from germane.alerting.detector.bet_grid import CELLS, Cells
from germane.alerting.detector.forward import Forward
from germane.alerting.detector.recovery import Recovery
from germane.alerting.detector.seen import FloatArray, Scores, Seen
from germane.alerting.detector.transition import HALVES, Carrier, Turn
from germane.baseline import Baseline

BLOCK: Final = 2048
"""Scores that are worked on at once."""
DAYS_A_YEAR: Final = 365
NEAR: Final = math.log(10)
"""How far behind the strongest a stream's half may lie and still carry an alarm."""


class Detector:
    """Watches one service, scorer and fingerprint against one baseline.

    Args:
        baseline: What is normal. Routes that it does not hold are passed over.
        min_drop: Smallest drop that matters, within (0, 1).
        false_alarms_per_year: Above 0.
        state: What :meth:`state` gave, to go on exactly there. Streams that joined the baseline since begin empty.
            Where a stream has left it, or its numbers or ``min_drop`` differ, all begin anew: see :attr:`restarted`.

    Raises:
        ValueError: a knob is out of its range.
    """

    def __init__(
        self,
        baseline: Baseline,
        *,
        min_drop: float = 0.05,
        false_alarms_per_year: float = 1.0,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        if not 0 < false_alarms_per_year < math.inf:
            raise ValueError(f"false alarms per year are a number above 0, not {false_alarms_per_year}")
        self._baseline = baseline
        self._cells = Cells(baseline, min_drop)
        self._forward = Forward(self._cells)
        self._digests: dict[int, str] = {}
        self._recovery: Recovery | None = None
        self._evidence, self._onset = math.inf, 0.0
        self._nominal = _log(DAYS_A_YEAR * baseline.scores_per_day / false_alarms_per_year)
        self._threshold = self._nominal
        self.restarted = state is not None and not self._restore(state)
        """Whether a state was given that does not fit, so that all began anew."""

    @property
    def firing(self) -> bool:
        """Whether it fired and has not resolved."""
        return self._recovery is not None

    @property
    def carriers(self) -> tuple[Carrier, ...]:
        """Where the evidence of what fires sits, the strongest first."""
        return self._recovery.carriers if self._recovery else ()

    @property
    def log_evidence(self) -> float:
        """Logarithm of the averaged evidence; -inf before the first score. While it fires, what it fired at."""
        return self._forward.evidence()

    @property
    def threshold(self) -> float:
        """Logarithm of what the evidence must exceed. It does not fall during a run, which ends with a resolution."""
        return self._threshold

    def feed(self, seen: Seen) -> list[Turn]:
        """Take scores in the order of their arrival, any number at once; return what fired or resolved, in order."""
        scores, turns, done = self._cells.read(seen), list[Turn](), 0
        while done < len(scores):
            block = scores.part(done, done + BLOCK)
            taken, turned = self._advance(block)
            done += taken
            if turned:
                turns.append(self._turn(int(block.places[taken - 1]), float(block.times[taken - 1])))
        return turns

    def state(self) -> dict[str, Any]:
        """Return what it knows, ready for JSON: about 1 kB per stream."""
        recovery = self._recovery
        return {
            "threshold": _plain(self._threshold),
            "streams": [self._stream(place) for place in range(self._forward.streams)],
            "firing": recovery
            and {
                "evidence": self._evidence,
                "onset": self._onset,
                "carriers": [asdict(carrier) for carrier in recovery.carriers],
                "recovery": recovery.evidence,
            },
        }

    def _advance(self, block: Scores) -> tuple[int, bool]:
        if self._recovery:
            return self._recovery.advance(block)
        return self._forward.advance(block, self._threshold)

    def _turn(self, index: int, at: float) -> Turn:
        """Change sides after the score that settled it."""
        if self._recovery is None:
            self._fire()
            return self._said("firing", index, at)
        turn = self._said("resolved", index, at)
        self._recovery = None
        self._forward.clear()
        self._threshold = self._nominal
        return turn

    def _fire(self) -> None:
        self._evidence = DAYS_A_YEAR * self._baseline.scores_per_day * math.exp(-self.log_evidence)
        self._onset = self._forward.onset()
        self._recovery = Recovery(self._cells, self._carriers())

    def _said(self, state: Any, index: int, at: float) -> Turn:
        return Turn(index=index, at=at, state=state, evidence=self._evidence, onset=self._onset, carriers=self.carriers)

    def _carriers(self) -> list[Carrier]:
        strength = self._forward.strength()
        order = np.argsort(-strength, axis=None, kind="stable")
        near = [int(place) for place in order if strength.flat[place] >= strength.max() - NEAR]
        names = [None, *self._cells.routes]
        return [Carrier(names[place // len(HALVES)], HALVES[place % len(HALVES)]) for place in near]

    def _stream(self, place: int) -> dict[str, Any]:
        forward = self._forward
        return {
            "route": self._cells.routes[place - 1] if place else None,
            "numbers": self._numbers(place),
            "logs": [[_plain(one) for one in half] for half in forward.logs[place].tolist()],
            "rises": forward.rises[place].tolist(),
            "starts": forward.starts[place].tolist(),
        }

    def _numbers(self, place: int) -> str:
        """Return a digest of what a stream's nulls and bets are made of.

        The whole service's grow with each route that joins: what they were made of before is known from the routes.
        """
        baseline = self._baseline
        if place in self._digests:
            return self._digests[place]
        names = [baseline.service, baseline.scorer, baseline.fingerprint, self._cells.min_drop]
        numbers = asdict(self._cells.numbers[place - 1]) if place else {}
        # A database may give a whole number back for one with a point.
        numbers = {name: float(value) for name, value in numbers.items()}
        said = json.dumps([names, numbers], sort_keys=True)
        return self._digests.setdefault(place, hashlib.sha256(said.encode()).hexdigest()[:16])

    def _restore(self, state: Mapping[str, Any]) -> bool:
        places: dict[str | None, int] = {None: 0} | {name: at + 1 for at, name in enumerate(self._cells.routes)}
        streams = state["streams"]
        if any(one["route"] not in places or one["numbers"] != self._numbers(places[one["route"]]) for one in streams):
            return False
        for one in streams:
            at = places[one["route"]]
            self._forward.logs[at] = _floats(one["logs"])
            self._forward.rises[at] = one["rises"]
            self._forward.starts[at] = one["starts"]
        self._threshold = max(self._nominal, _number(state["threshold"]))
        if firing := state["firing"]:
            self._evidence, self._onset = firing["evidence"], firing["onset"]
            carriers = [Carrier(**carrier) for carrier in firing["carriers"]]
            self._recovery = Recovery(self._cells, carriers, firing["recovery"])
        return True


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _plain(value: float) -> float | None:
    """Write -inf, which JSON has no word for, as null."""
    return None if value == -math.inf else value


def _number(value: float | None) -> float:
    return -math.inf if value is None else value


def _floats(halves: Any) -> FloatArray:
    return np.array([[_number(one) for one in half] for half in halves]).reshape(len(HALVES), CELLS)
