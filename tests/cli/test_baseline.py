"""``germane baseline``: what is normal is shown, imported and accepted."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import Score
from germane.storage import Decision, Key, Store

Call = Callable[..., Any]
NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def history(store: Store, *, days: int, per_day: int = 10, fingerprint: str = "f1") -> None:
    """Have answers of the last days scored."""
    chance = random.Random(3)
    step = DAY / per_day
    moments = [NOW - timedelta(hours=1) - step * number for number in range(days * per_day)]
    exchanges = [Exchange.of("How?", f"So, says {number}.") for number in range(len(moments))]
    store.add(exchanges)
    store.assign([Decision(one.id, 1.0, "drawn") for one in exchanges], {"relevancy": fingerprint})
    claims = store.claim("me", {"relevancy": fingerprint}, limit=len(exchanges), lease=DAY)
    tasks = [task for claim in claims for task in claim.tasks]
    values = [chance.betavariate(8, 2) for _ in tasks]
    results = [
        (task, Score(scorer="relevancy", fingerprint=fingerprint, value=value, scored_at=moment))
        for task, value, moment in zip(tasks, values, moments, strict=True)
    ]
    store.complete("me", results)


def rows(path: Path, count: int = 60, **more: Any) -> str:
    """Write scores to a file of JSON lines, and return its name."""
    chance = random.Random(4)
    lines = [
        {"route": "ask", "value": chance.betavariate(8, 2), **{name: give(number) for name, give in more.items()}}
        for number in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return str(path)


def test_without_a_score_there_is_nothing_to_show(call: Call, database: str) -> None:
    """It says when there will be."""
    ended = call("baseline", "show")

    assert (ended.code, ended.out) == (0, "No baseline yet: learning begins with the first score.\n")
    assert call("baseline", "show", "--json").content["baselines"] == []
    assert call("baseline", "show", "--scorer", "relevancy").out == "There is no such baseline.\n"


def test_a_fortnight_that_nobody_ended_says_so(call: Call, store: Store) -> None:
    """Where no process has watched since, a time that has passed is no promise."""
    until = datetime.now(UTC) - timedelta(hours=2)
    store.begin_learning(Key("shop", "relevancy", "f1"), "first", since=until - 14 * DAY, until=until)

    said = f"learning until {until:%Y-%m-%d %H:%M} UTC, and nobody has looked since: relevancy of shop; drops are "
    assert said in call("baseline", "show").out
    assert said in call("report").out
    assert said in call("doctor", "--offline").out


def test_what_is_learned_says_until_when(call: Call, store: Store) -> None:
    """In words, and for programs."""
    until = NOW + 14 * DAY
    store.begin_learning(Key("shop", "relevancy", "f1"), "first", since=NOW, until=until)

    when = f"learning until {until:%Y-%m-%d %H:%M} UTC"
    said = f"{when}: relevancy of shop; drops are noticed from then on, if 30 scores have come"
    assert said in call("baseline", "show").out
    assert said in call("report").out
    assert said in call("doctor", "--offline").out
    assert call("report", "--json").content["learning"][0]["until"] == until.isoformat()
    content = call("baseline", "show", "--json").content
    assert (content["baselines"][0]["status"], content["learning"]) == ("learning", [content["baselines"][0]["id"]])


def test_history_takes_the_place_of_waiting(call: Call, store: Store) -> None:
    """All scores that are stored since then; the numbers are shown by route."""
    history(store, days=10)
    ended = call("baseline", "import", "--since", "9d")

    assert ended.code == 0, ended.err
    assert "version 1: active (imported)" in ended.out
    (version,) = store.baselines()
    assert version.key.scorer == "relevancy"
    assert version.baseline.n == 90
    assert version.baseline.scores_per_day == pytest.approx(10, abs=0.1)
    assert "90 scores of" in call("baseline", "show").out


def test_whose_scores_a_file_holds_must_be_known(call: Call, store: Store, tmp_path: Path) -> None:
    """Of which scorer, and by which judge: of a service that nobody has scored yet none is running."""
    file = rows(tmp_path / "rows.jsonl")
    history(store, days=1)

    assert "does not say of which scorer" in call("baseline", "import", file, "--as", "running").err
    refused = call("baseline", "import", file, "--scorer", "relevancy", "--as", "running", "--service", "other")
    assert "nobody has scored other with relevancy yet: name another --service" in refused.err


def test_days_before_the_first_score_do_not_count(call: Call, store: Store) -> None:
    """How many scores a day there are decides how often a detector may be wrong: it is not thinned by days without."""
    history(store, days=10)

    assert call("baseline", "import", "--since", "90d").code == 0
    (version,) = store.baselines()
    assert version.baseline is not None
    assert version.baseline.scores_per_day == pytest.approx(10, abs=0.1)


def test_a_day_is_no_history(call: Call, store: Store) -> None:
    """It does not show how one day differs from another."""
    history(store, days=2, per_day=20)

    ended = call("baseline", "import", "--since", "9d")
    assert (ended.code, store.baselines()) == (1, [])
    assert "less than three days" in ended.err


def test_too_little_history_is_refused(call: Call, store: Store) -> None:
    """It takes 30 scores of one route."""
    history(store, days=2)

    ended = call("baseline", "import", "--since", "9d")
    assert (ended.code, store.baselines()) == (1, [])
    assert "20 scores are too few" in ended.err


def test_a_file_without_times_needs_the_rate(call: Call, database: str, tmp_path: Path, store: Store) -> None:
    """How many scores a day there are says how often the detector is asked; day-to-day wander is assumed."""
    file = rows(tmp_path / "rows.jsonl")
    to = ("--service", "shop", "--scorer", "relevancy", "--as", "f9")
    refused = call("baseline", "import", file, *to)
    assert (refused.code, "how many scores a day" in refused.err) == (1, True)

    assert call("baseline", "import", file, *to, "--per-day", "20").code == 0
    (version,) = store.baselines()
    assert version.key == Key("shop", "relevancy", "f9")
    assert version.baseline.n == 60
    assert version.baseline.scores_per_day == pytest.approx(20, abs=1e-6)
    assert version.baseline.routes["ask"].committed_wander == 0.01


def test_a_file_with_times_tells_rate_and_wander(call: Call, database: str, tmp_path: Path, store: Store) -> None:
    """Nothing has to be said beside it."""
    file = rows(
        tmp_path / "rows.jsonl",
        200,
        at=lambda number: (NOW - timedelta(hours=number)).isoformat(),
        scorer=lambda _: "relevancy",
        label=lambda number: "noncommittal" if number % 20 == 0 else "high",
    )

    assert call("baseline", "import", file, "--as", "f9").code == 0
    found = store.baselines()[0].baseline
    assert found.scores_per_day == pytest.approx(24, abs=0.2)
    assert found.routes["ask"].zero_rate == pytest.approx(10.5 / 201, abs=1e-9)


def test_scores_of_another_judge_are_refused(call: Call, store: Store, tmp_path: Path) -> None:
    """They measure otherwise; whoever knows better says so."""
    history(store, days=1)
    (service,) = {one.service for one in store.summary()}
    file = rows(tmp_path / "rows.jsonl", scorer=lambda _: "relevancy", fingerprint=lambda _: "f2")
    to = (file, "--service", service, "--per-day", "20")

    refused = call("baseline", "import", *to)
    assert (refused.code, "cannot be compared" in refused.err) == (1, True)
    assert call("baseline", "import", *to, "--as", "running").code == 0
    assert store.baselines()[0].key.fingerprint == "f1"


def test_a_report_of_an_evaluation_is_taken_as_it_is(call: Call, database: str, tmp_path: Path, store: Store) -> None:
    """What `germane score --report json` writes; rows without a score are passed over."""
    values = [None, *(0.5 + number / 100 for number in range(40))]
    scored = [{"scorer": "relevancy", "fingerprint": "f1", "value": value, "label": "high"} for value in values]
    content = [{"place": "row", "route": "ask", "scores": {"relevancy": score}} for score in scored]
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"schema_version": 1, "rows": content}))

    assert call("baseline", "import", str(file), "--service", "shop", "--per-day", "20", "--as", "f1").code == 0
    assert store.baselines()[0].baseline.n == 40


@pytest.mark.parametrize(
    ("line", "said"),
    [('{"value": "high"}', "no number"), ('{"value": NaN}', "no number"), ('{"value": 0.5, "at": "now"}', "no moment")],
)
def test_a_row_that_is_none_is_named(call: Call, database: str, tmp_path: Path, line: str, said: str) -> None:
    """Nothing is imported."""
    file = tmp_path / "rows.jsonl"
    file.write_text(line)

    ended = call("baseline", "import", str(file), "--scorer", "relevancy", "--as", "f1", "--per-day", "9")
    assert (ended.code, said in ended.err) == (1, True)


def test_what_came_since_is_accepted(call: Call, store: Store) -> None:
    """A newer version takes the old one's place; with less than three days, learning begins anew."""
    history(store, days=10)
    call("baseline", "import", "--since", "9d")
    refused = call("baseline", "accept")
    assert (refused.code, "--since" in refused.err) == (1, True)

    assert call("baseline", "accept", "--since", "5d").code == 0
    assert "version 2: active (accepted)" in call("baseline", "show").out
    assert call("baseline", "accept", "--since", "2d").code == 0
    shown = call("baseline", "show", "--all").out
    assert "version 1: superseded (imported)" in shown
    assert "version 3: learning (accepted)" in shown
    (learning,) = store.learning()
    assert learning.until - learning.since == 14 * DAY
