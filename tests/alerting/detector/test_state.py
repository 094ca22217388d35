"""What a detector's state carries over when its baseline or its knobs change."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from tests.alerting.detector.streams import bad_and_good, baseline, cut

from germane.alerting.detector import Detector
from germane.baseline import Baseline

BASELINE = baseline()
STREAM = bad_and_good()


def without(route: str) -> Baseline:
    routes = {name: one for name, one in BASELINE.routes.items() if name != route}
    rate = BASELINE.scores_per_day - BASELINE.routes[route].scores_per_day
    return replace(BASELINE, routes=routes, scores_per_day=rate)


def test_a_route_joins_with_empty_cells_and_the_others_keep_theirs() -> None:
    """The whole service's too; the threshold rises with the traffic."""
    before = Detector(without("support"))
    before.feed(cut(STREAM, 0, 500))

    after = Detector(BASELINE, state=json.loads(json.dumps(before.state())))

    kept = {one["route"]: one for one in before.state()["streams"]}
    for stream in after.state()["streams"]:
        expected = kept.get(stream["route"], stream | {"logs": [[None] * 8] * 2})
        assert stream["logs"] == expected["logs"]
    assert not after.restarted
    assert after.threshold > before.threshold
    assert after.log_evidence == pytest.approx(before.log_evidence + math.log(3 / 4), abs=1e-9)


def test_a_route_that_joins_leaves_an_alarm_firing() -> None:
    """With its carriers and what they gathered for recovery."""
    before = Detector(without("support"))
    before.feed(cut(STREAM, 0, 1500))
    assert before.firing

    after = Detector(BASELINE, state=json.loads(json.dumps(before.state())))

    assert after.carriers == before.carriers
    assert after.state()["firing"] == before.state()["firing"]


@pytest.mark.parametrize("change", ["removed", "numbers", "fingerprint", "min_drop"])
def test_all_begins_anew_where_the_numbers_are_others(change: str) -> None:
    """A route that left, other numbers, another fingerprint or smallest drop: no log and no alarm is carried over."""
    before = Detector(BASELINE)
    before.feed(cut(STREAM, 0, 1500))
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


def test_the_threshold_does_not_fall_during_a_run() -> None:
    """More false alarms allowed count from the next run on, which a resolution begins."""
    strict = Detector(BASELINE, false_alarms_per_year=1)
    strict.feed(cut(STREAM, 0, 1500))
    assert strict.firing

    lax = Detector(BASELINE, false_alarms_per_year=12, state=strict.state())

    assert lax.threshold == strict.threshold
    lax.feed(cut(STREAM, 1500, 4000))
    assert lax.threshold == pytest.approx(strict.threshold - math.log(12), abs=1e-9)


def test_the_threshold_follows_from_the_false_alarms_a_year() -> None:
    """A = 365 N / false alarms a year; it may rise at once."""
    assert Detector(BASELINE).threshold == pytest.approx(math.log(365 * 300), abs=1e-9)
    state = Detector(BASELINE, false_alarms_per_year=12).state()
    assert Detector(BASELINE, state=state).threshold == pytest.approx(math.log(365 * 300), abs=1e-9)


def test_the_state_is_small() -> None:
    """About 1 kB per stream."""
    detector = Detector(BASELINE)
    detector.feed(cut(STREAM, 0, 500))

    assert len(json.dumps(detector.state())) < 1500 * (len(BASELINE.routes) + 1)
