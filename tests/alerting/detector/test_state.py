"""A detector's state across changes to its baseline and parameters."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from tests.alerting.detector.streams import bad_and_good, baseline, cut

from germane.alerting.detector.detector import Detector
from germane.baseline import Baseline

BASELINE = baseline()
STREAM = bad_and_good()


def without(route: str) -> Baseline:
    routes = {name: one for name, one in BASELINE.routes.items() if name != route}
    rate = BASELINE.scores_per_day - BASELINE.routes[route].scores_per_day
    return replace(BASELINE, routes=routes, scores_per_day=rate)


def test_a_route_that_joins_a_detector_starts_without_evidence() -> None:
    """Other streams keep their evidence, and the threshold rises with the traffic."""
    before = Detector(without("support"))
    before.process(cut(STREAM, 0, 500))

    after = Detector(BASELINE, state=json.loads(json.dumps(before.state())))

    stored = {one["route"]: one for one in before.state()["streams"]}
    for stream in after.state()["streams"]:
        expected = stored.get(stream["route"], stream | {"logs": [[None] * 8] * 2})
        assert stream["logs"] == expected["logs"]
    assert not after.restarted
    assert after.threshold > before.threshold
    assert after.log_evidence == pytest.approx(before.log_evidence + math.log(3 / 4), abs=1e-9)


def test_a_route_that_joins_a_detector_does_not_resolve_a_drop() -> None:
    """Contributors and recovery evidence are kept."""
    before = Detector(without("support"))
    before.process(cut(STREAM, 0, 1500))
    assert before.firing

    after = Detector(BASELINE, state=json.loads(json.dumps(before.state())))

    assert after.contributors == before.contributors
    assert after.state()["firing"] == before.state()["firing"]


@pytest.mark.parametrize("change", ["removed", "numbers", "fingerprint", "min_drop"])
def test_a_changed_baseline_restarts_the_detector(change: str) -> None:
    """This applies to a removed route, different numbers, a different fingerprint or a different min_drop."""
    before = Detector(BASELINE)
    before.process(cut(STREAM, 0, 1500))
    faq = replace(BASELINE.routes["faq"], committed_mean=0.5)
    changed = {
        "removed": without("faq"),
        "numbers": replace(BASELINE, routes={**BASELINE.routes, "faq": faq}),
        "fingerprint": replace(BASELINE, fingerprint="f2"),
    }.get(change, BASELINE)

    after = Detector(changed, min_drop=0.1 if change == "min_drop" else 0.05, state=before.state())

    assert after.restarted
    assert not after.firing
    assert after.log_evidence == -math.inf


def test_the_detection_threshold_never_falls_during_a_run() -> None:
    """A higher number of allowed false alerts takes effect after the next resolution."""
    strict = Detector(BASELINE, false_alerts_per_year=1)
    strict.process(cut(STREAM, 0, 1500))
    assert strict.firing

    lax = Detector(BASELINE, false_alerts_per_year=12, state=strict.state())

    assert lax.threshold == strict.threshold
    lax.process(cut(STREAM, 1500, 4000))
    assert lax.threshold == pytest.approx(strict.threshold - math.log(12), abs=1e-9)


def test_the_detection_threshold_is_computed_from_false_alerts_per_year() -> None:
    """A = 365 N / false alerts per year. The threshold may rise immediately."""
    assert Detector(BASELINE).threshold == pytest.approx(math.log(365 * 300), abs=1e-9)
    state = Detector(BASELINE, false_alerts_per_year=12).state()
    assert Detector(BASELINE, state=state).threshold == pytest.approx(math.log(365 * 300), abs=1e-9)


def test_the_stored_detector_state_is_small() -> None:
    """The state takes about 1 kB per stream."""
    detector = Detector(BASELINE)
    detector.process(cut(STREAM, 0, 500))

    assert len(json.dumps(detector.state())) < 1500 * (len(BASELINE.routes) + 1)
