"""What the demo says at its end."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from germane.cli.commands.demo import verdict
from germane.demo.run import Outcome, RaisedAlert

ALERT = RaisedAlert("setup", 62.0, "firing", "setup is below 0.45.")
OUTCOME = Outcome(
    captured=112,
    sampled=83,
    scored=80,
    failed=2,
    failed_reasons={"no_usable_question": 2},
    on_original_span=79,
    on_carrier_span=1,
    rows=80,
    fault_at=36.0,
    before=(0.71, 14),
    after=(0.22, 17),
    alerts=[ALERT],
    seconds=95.0,
    database="sqlite:////folder/demo.db",
    judge="some-judge",
    spans=112,
    worst=[],
)


def told(**changes: Any) -> str:
    """Return the verdict on an outcome as one line."""
    return " ".join(" ".join(verdict(dataclasses.replace(OUTCOME, **changes))).split())


def test_an_alert_is_told_with_both_means_and_its_delay() -> None:
    """The route that broke, before and since."""
    assert (
        "'setup' stopped answering the question: mean relevancy 0.71 (n = 14) before the index went wrong, "
        "0.22 (n = 17) since. Alert 26 s after the fault: setup is below 0.45." in told()
    )


def test_every_answer_is_accounted_for() -> None:
    """Scored, failed with reasons, and waiting are what was drawn."""
    assert "83 drawn, 80 scored, 2 failed (2 no_usable_question), 1 still waiting." in told()


def test_a_miss_is_called_one() -> None:
    """Also where an alert came too early, or for another route: that is a false alarm."""
    early, other = dataclasses.replace(ALERT, at=20.0), dataclasses.replace(ALERT, route="api")

    assert "No alert came, though 'setup' went wrong after 36 s: a miss." in told(alerts=[])
    for alert in (early, other):
        assert f"a miss. A false alarm after {alert.at:.0f} s" in told(alerts=[alert])


def test_nothing_scored_is_no_number() -> None:
    """Neither a mean nor an empty list of the lowest answers."""
    words = told(before=(math.nan, 0), scored=0, rows=0)

    assert "mean relevancy unknown (n = 0) before" in words
    assert "The lowest answers" not in words


def test_the_toy_is_called_a_toy() -> None:
    """And nothing else is."""
    assert "local:tiny, is a toy" in told(judge="local:tiny")
    assert "toy" not in told()
