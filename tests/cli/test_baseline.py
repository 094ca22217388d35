"""Tests of `germane baseline`."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import Score
from germane.storage import BaselineKey, SamplingDecision, TrackingStore

Call = Callable[..., Any]
NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def history(store: TrackingStore, *, days: int, per_day: int = 10, fingerprint: str = "f1") -> None:
    """Write scored answers from the last few days."""
    chance = random.Random(3)
    step = DAY / per_day
    moments = [NOW - timedelta(hours=1) - step * number for number in range(days * per_day)]
    exchanges = [Exchange.from_texts("How?", f"So, says {number}.") for number in range(len(moments))]
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks(
        [SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], {"relevancy": fingerprint}
    )
    claims = store.queue.claim_tasks("me", {"relevancy": fingerprint}, limit=len(exchanges), lease=DAY)
    tasks = [task for claim in claims for task in claim.tasks]
    values = [chance.betavariate(8, 2) for _ in tasks]
    results = [
        (task, Score(scorer="relevancy", fingerprint=fingerprint, value=value, scored_at=moment))
        for task, value, moment in zip(tasks, values, moments, strict=True)
    ]
    store.queue.complete_tasks("me", results)


def rows(path: Path, count: int = 60, **more: Any) -> str:
    """Write scores to a JSON Lines file, and return its name."""
    chance = random.Random(4)
    lines = [
        {"route": "ask", "value": chance.betavariate(8, 2), **{name: give(number) for name, give in more.items()}}
        for number in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return str(path)


def test_the_output_says_that_there_is_no_baseline_without_scores(call: Call, database: str) -> None:
    """The output states when learning begins."""
    ended = call("baseline", "show")

    assert (ended.code, ended.out) == (0, "No baseline yet. Learning begins with the first score.\n")
    assert call("baseline", "show", "--json").content["baselines"] == []
    assert call("baseline", "show", "--scorer", "relevancy").out == "No matching baseline.\n"


def test_learning_that_takes_longer_than_planned_is_reported(call: Call, store: TrackingStore) -> None:
    """The output reports that no process has evaluated the scores since the learning period ended."""
    until = datetime.now(UTC) - timedelta(hours=2)
    store.baselines.begin_learning(BaselineKey("shop", "relevancy", "f1"), "first", since=until - 14 * DAY, until=until)

    expected = f"learning ended at {until:%Y-%m-%d %H:%M} UTC, but no worker has evaluated relevancy for shop since"
    assert expected in call("baseline", "show").out
    assert expected in " ".join(call("report").out.split())
    assert expected in call("doctor", "--offline").out


def test_a_baseline_that_is_being_learned_is_shown_with_the_end_of_learning(call: Call, store: TrackingStore) -> None:
    """The end is shown as text and in JSON."""
    until = NOW + 14 * DAY
    store.baselines.begin_learning(BaselineKey("shop", "relevancy", "f1"), "first", since=NOW, until=until)

    when = f"learning until {until:%Y-%m-%d %H:%M} UTC"
    expected = f"{when}: relevancy for shop; large drops are detected after one day"
    assert expected in call("baseline", "show").out
    assert expected in " ".join(call("report").out.split())
    assert expected in call("doctor", "--offline").out
    assert call("report", "--json").content["learning"][0]["until"] == until.isoformat()
    content = call("baseline", "show", "--json").content
    assert (content["baselines"][0]["status"], content["learning"]) == ("learning", [content["baselines"][0]["id"]])


def test_a_baseline_can_be_learned_from_stored_scores(call: Call, store: TrackingStore) -> None:
    """The baseline is learned from all scores stored since a given time. The means are shown by route."""
    history(store, days=10)
    ended = call("baseline", "import", "--since", "9d")

    assert ended.code == 0, ended.err
    assert "version 1: active (imported)" in ended.out
    (version,) = store.baselines.list_versions()
    assert version.key.scorer == "relevancy"
    assert version.baseline.n == 90
    assert version.baseline.scores_per_day == pytest.approx(10, abs=0.1)
    assert "90 scores, " in call("baseline", "show").out


def test_importing_scores_as_a_baseline_requires_scorer_and_fingerprint(
    call: Call, store: TrackingStore, tmp_path: Path
) -> None:
    """A service without scores has no current fingerprint."""
    file = rows(tmp_path / "rows.jsonl")
    history(store, days=1)

    assert "does not state the scorer" in call("baseline", "import", file, "--as", "running").err
    refused = call("baseline", "import", file, "--scorer", "relevancy", "--as", "running", "--service", "other")
    assert "no scores from relevancy for other yet; choose another --service" in refused.err


def test_days_before_the_first_score_do_not_lower_the_score_rate(call: Call, store: TrackingStore) -> None:
    """The number of scores per day determines the detector's false-alert rate."""
    history(store, days=10)

    assert call("baseline", "import", "--since", "90d").code == 0
    (version,) = store.baselines.list_versions()
    assert version.baseline is not None
    assert version.baseline.scores_per_day == pytest.approx(10, abs=0.1)


def test_one_day_of_scores_is_not_enough_to_learn_a_baseline(call: Call, store: TrackingStore) -> None:
    """A single day does not show how much scores vary from day to day."""
    history(store, days=2, per_day=20)

    ended = call("baseline", "import", "--since", "9d")
    assert (ended.code, store.baselines.list_versions()) == (1, [])
    assert re.search(r"40 scores over 4\d\.\d h are too few for a baseline of relevancy for manual: ", ended.err)


def test_learning_from_too_few_scores_is_rejected(call: Call, store: TrackingStore) -> None:
    """A baseline needs 30 scores for one route."""
    history(store, days=4, per_day=5)

    ended = call("baseline", "import", "--since", "9d")
    assert (ended.code, store.baselines.list_versions()) == (1, [])
    assert "20 scores are too few" in ended.err


def test_a_baseline_file_without_times_requires_the_score_rate(
    call: Call, database: str, tmp_path: Path, store: TrackingStore
) -> None:
    """The rate determines the detector's threshold. The day-to-day standard deviation is assumed."""
    file = rows(tmp_path / "rows.jsonl")
    to = ("--service", "shop", "--scorer", "relevancy", "--as", "f9")
    refused = call("baseline", "import", file, *to)
    assert (refused.code, "number of scores per day" in refused.err) == (1, True)

    assert call("baseline", "import", file, *to, "--per-day", "20").code == 0
    (version,) = store.baselines.list_versions()
    assert version.key == BaselineKey("shop", "relevancy", "f9")
    assert version.baseline.n == 60
    assert version.baseline.scores_per_day == pytest.approx(20, abs=1e-6)
    assert version.baseline.routes["ask"].committed_wander == 0.01


def test_a_baseline_file_with_times_determines_rate_and_deviation(
    call: Call, database: str, tmp_path: Path, store: TrackingStore
) -> None:
    """No further options are needed."""
    file = rows(
        tmp_path / "rows.jsonl",
        200,
        at=lambda number: (NOW - timedelta(hours=number)).isoformat(),
        scorer=lambda _: "relevancy",
        label=lambda number: "noncommittal" if number % 20 == 0 else "high",
    )

    assert call("baseline", "import", file, "--as", "f9").code == 0
    learned = store.baselines.list_versions()[0].baseline
    assert learned.scores_per_day == pytest.approx(24, abs=0.2)
    assert learned.routes["ask"].zero_rate == pytest.approx(10.5 / 201, abs=1e-9)


def test_baseline_rows_with_another_fingerprint_are_rejected(call: Call, store: TrackingStore, tmp_path: Path) -> None:
    """Such scores are not comparable. --as overrides the check."""
    history(store, days=1)
    (service,) = {one.service for one in store.trends.summary()}
    file = rows(tmp_path / "rows.jsonl", scorer=lambda _: "relevancy", fingerprint=lambda _: "f2")
    to = (file, "--service", service, "--per-day", "20")

    refused = call("baseline", "import", *to)
    assert (refused.code, "not comparable" in refused.err) == (1, True)
    assert call("baseline", "import", *to, "--as", "running").code == 0
    assert store.baselines.list_versions()[0].key.fingerprint == "f1"


def test_an_evaluation_report_can_be_imported_as_a_baseline(
    call: Call, database: str, tmp_path: Path, store: TrackingStore
) -> None:
    """The file is the output of `germane score --report json`. Rows without a score are skipped."""
    values = [None, *(0.5 + number / 100 for number in range(40))]
    scored = [{"scorer": "relevancy", "fingerprint": "f1", "value": value, "label": "high"} for value in values]
    content = [{"place": "row", "route": "ask", "scores": {"relevancy": score}} for score in scored]
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"schema_version": 1, "rows": content}))

    assert call("baseline", "import", str(file), "--service", "shop", "--per-day", "20", "--as", "f1").code == 0
    assert store.baselines.list_versions()[0].baseline.n == 40


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"value": "high"}', "`value` must be a number, not 'high'"),
        ('{"value": NaN}', "`value` must be a number, not"),
        ('{"value": 0.5, "at": "now"}', "`at` must be an ISO 8601 timestamp, not 'now'"),
    ],
)
def test_the_error_for_an_invalid_baseline_row_names_the_row(
    call: Call, database: str, tmp_path: Path, line: str, message: str
) -> None:
    """Nothing is imported."""
    file = tmp_path / "rows.jsonl"
    file.write_text(line)

    ended = call("baseline", "import", str(file), "--scorer", "relevancy", "--as", "f1", "--per-day", "9")
    assert (ended.code, message in ended.err) == (1, True)


def test_baseline_accept_replaces_the_baseline(call: Call, store: TrackingStore) -> None:
    """With less than three days of scores, learning restarts."""
    history(store, days=10)
    call("baseline", "import", "--since", "9d")
    refused = call("baseline", "accept")
    assert (refused.code, "--since" in refused.err) == (1, True)

    assert call("baseline", "accept", "--since", "5d", "--by", "ann").code == 0
    assert "version 2: active (accepted)" in call("baseline", "show").out
    assert call("baseline", "accept", "--since", "2d", "--by", "bob").code == 0
    shown = call("baseline", "show", "--all").out
    assert "version 1: superseded (imported)" in shown
    assert "version 3: learning (accepted)" in shown
    (learning,) = store.baselines.list_learning()
    assert learning.until - learning.since == 14 * DAY
    people = [version.accepted_by for version in store.baselines.list_versions(superseded=True)]
    assert people == [None, "ann", "bob"]
