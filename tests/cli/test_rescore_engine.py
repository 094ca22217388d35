"""Tests of `germane rescore --engine`: answers are scored by the command itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cases import each

from germane.exchange import Exchange
from germane.storage import HistorySelection, TrackingStore

Call = Callable[..., Any]
Scored = Callable[..., list[Exchange]]
LOCAL = ("--scorer", "noncommittal", "--engine", "local:1")


def values(store: TrackingStore, exchanges: list[Exchange], scorer: str) -> list[float | None]:
    """Return the value of each exchange's score by a scorer."""
    scores = store.answers.get_scores([one.id for one in exchanges])
    return [next((each.value for each in scores[one.id] if each.scorer == scorer), None) for one in exchanges]


def test_all_answers_are_scored_by_a_scorer_that_never_ran(call: Call, store: TrackingStore, scored: Scored) -> None:
    """A dry run shows the number of answers and writes nothing. A second run replaces the scores."""
    made = [*scored(store, [0.9, 0.2], answer="By card."), *scored(store, [0.1], answer="I do not know.")]

    planned = call("rescore", "--all", *LOCAL, "--estimate")
    assert planned.code == 0, planned.err
    assert "noncommittal: 3 answers, about 0 requests" in planned.out
    assert store.history.list_unfinished() == []

    ended = call("rescore", "--all", *LOCAL, "--yes")
    assert ended.code == 0, ended.err
    assert re.search(r"Run [0-9a-f]{8}: 3 answers in 1 partition\.\n3 scored, 0 failed, 0 skipped, in", ended.out)
    assert values(store, made, "noncommittal") == [1.0, 1.0, 0.0]
    assert values(store, made, "answer_relevancy") == [0.9, 0.2, 0.1]


@pytest.mark.slow
def test_an_unfinished_run_is_continued(call: Call, store: TrackingStore, scored: Scored) -> None:
    """By the same command, or by --resume. A finished run cannot be continued."""
    made = scored(store, [0.9, 0.2, 0.1])
    now = datetime.now(UTC)
    fingerprint = call("rescore", "--all", *LOCAL, "--estimate", "--json").content["scorers"][0]["fingerprint"]
    selection = HistorySelection(
        since=now - timedelta(hours=24), until=now, scorers={"noncommittal": fingerprint}, everything=True
    )
    first, second = (store.history.create_run(selection, partition_size=2) for _ in range(2))

    assert f"Run {second.id} is not finished: 0 of 2" in call("rescore", "--all", *LOCAL, "--estimate").out
    repeated = call("rescore", "--all", *LOCAL, "--json", "--yes").content["run"]
    assert (repeated["id"], repeated["done_partitions"], repeated["scored"]) == (second.id, 2, 3)

    assert f"Run {first.id} is not finished: 0 of 2" in call("rescore", "--resume", first.id, "--estimate").out
    resumed = call("rescore", "--resume", first.id, "--json").content["run"]
    assert (resumed["id"], resumed["done_partitions"], resumed["scored"]) == (first.id, 2, 3)
    assert values(store, made, "noncommittal") == [1.0, 1.0, 1.0]
    again = call("rescore", "--resume", first.id)
    assert again.code != 0
    assert f"run {first.id} finished at" in again.err


def test_a_repeated_command_continues_its_run_however_long_the_confirmation_took(
    call: Call, store: TrackingStore, scored: Scored
) -> None:
    """Windows are compared at the starts of the commands, not when the run was created."""
    scored(store, [0.9])
    fingerprint = call("rescore", "--all", *LOCAL, "--estimate", "--json").content["scorers"][0]["fingerprint"]
    started = datetime.now(UTC) - timedelta(minutes=5)
    selection = HistorySelection(
        since=started - timedelta(hours=24),
        until=started,
        scorers={"noncommittal": fingerprint},
        everything=True,
        requested_at=started,
    )
    run = store.history.create_run(selection, partition_size=2)

    assert store.history.get_run(run.id).selection == selection
    assert f"Run {run.id} is not finished" in call("rescore", "--all", *LOCAL, "--estimate").out


def test_an_empty_selection_is_explained(call: Call, store: TrackingStore, scored: Scored) -> None:
    """A scorer that never ran has no results to select, so the message names --all."""
    scored(store, [0.9])
    out = call("rescore", *LOCAL, "--estimate").out
    assert out.startswith("Nothing to rescore: by default, only answers with a score or a failure of the scorer")
    assert "--all" in out
    assert "--since" in out


@each(
    ("arguments", "message"),
    [
        (("--all",), "--all requires --engine"),
        (("--engine", "local:0"), "'local:0' is not an engine"),
        (("--engine", "dask:2@tcp://x"), "'dask:2@tcp://x' is not an engine"),
        (("--engine", "local@tcp://x"), "'local@tcp://x' is not an engine such as local, local:8"),
        (("--engine", "local", "--all", "--below", "0.5"), "use only one of them"),
        (("--engine", "local", "--limit", "5"), "--limit does not apply with --engine"),
        (("--resume", "nope"), "there is no run 'nope'"),
    ],
)
def test_contradictory_options_are_rejected(
    call: Call, store: TrackingStore, scored: Scored, arguments: tuple[str, ...], message: str
) -> None:
    """The message names the option and what to do."""
    scored(store, [0.9])
    ended = call("rescore", *arguments)
    assert ended.code != 0
    assert message in ended.err
