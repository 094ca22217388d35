"""Tests of `germane labels`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from germane.storage import TrackingStore

Call = Callable[..., Any]
Scored = Callable[..., Any]


@pytest.fixture
def two_routes(store: TrackingStore, scored: Scored) -> TrackingStore:
    """Scores of two routes and two scorers."""
    scored(store, [0.9] * 40, route="ask")
    scored(store, [0.4] * 5, route="find\x1b[31m")
    scored(store, [0.5] * 60, route="ask", scorer="faithfulness")
    return store


def test_a_drawn_wave_is_shown_by_route_with_the_page_on_which_to_label_it(
    two_routes: TrackingStore, call: Call
) -> None:
    """The scorer is the one that the dashboard shows. Control characters in names are not printed."""
    ended = call("labels", "draw", "--count", "12", "--since", "1h")

    (wave,) = two_routes.draws.list_waves()
    assert (ended.code, wave.scorer, wave.total.size) == (0, "answer_relevancy", 12)
    assert re.match(rf"Drew 12 answers with a score of answer_relevancy, \d.* UTC: wave {wave.id}\n", ended.out)
    shown = [line.split()[-1] for line in ended.out.splitlines()[3:5]]
    assert shown == [f"{one.size}" for one in wave.routes]
    assert "\x1b" not in ended.out
    assert ended.out.endswith(f"Label them on the dashboard: /labels/{wave.id}\n")
    assert 60 <= (wave.until - wave.since).total_seconds() < 120  # since the first answer


def test_the_link_to_a_wave_follows_from_that_of_an_answer(
    two_routes: TrackingStore, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another page of answers says nothing about the dashboard."""
    monkeypatch.setenv("GERMANE_EXCHANGE_URL", "https://germane.example.com/team/a/{id}")
    link = call("labels", "draw", "--json").content["link"]
    assert link == f"https://germane.example.com/team/labels/{two_routes.draws.list_waves()[0].id}"
    monkeypatch.setenv("GERMANE_EXCHANGE_URL", "https://traces.example.com/{id}")
    assert call("labels", "draw", "--count", "1", "--json").content["link"].startswith("/labels/")


def test_answers_are_drawn_of_the_chosen_route_service_and_scorer(two_routes: TrackingStore, call: Call) -> None:
    """An unknown name is an error."""
    found = call("labels", "draw", "--route", "ask", "--scorer", "faithfulness", "--service", "shop", "--json").content
    assert found["wave"]["scorer"] == "faithfulness"
    assert [(one["route"], one["size"], one["open"]) for one in found["wave"]["routes"]] == [("ask", 50, 50)]
    assert call("labels", "draw", "--route", "asc").code == 2
    ended = call("labels", "draw", "--scorer", "answer_relevancy", "--since", "0s")
    assert (ended.code, ended.out) == (1, "")
    assert "no answer from" in ended.err


def test_the_status_counts_what_people_said(two_routes: TrackingStore, call: Call) -> None:
    """One line per wave, newest first."""
    assert call("labels", "status").out == "No answers have been drawn yet. Draw 50 with: germane labels draw\n"
    wave = call("labels", "draw", "--count", "9", "--json").content["wave"]["id"]
    for verdict in ("answers", "does_not", "cannot_tell", "skipped"):
        _, exchange_id = two_routes.draws.next_answer(wave) or (0, "")
        two_routes.draws.settle(wave, exchange_id, verdict)  # type: ignore[arg-type]  # one of the verdicts
    call("labels", "draw", "--scorer", "faithfulness")

    ended = call("labels", "status", "--scorer", "answer_relevancy")
    header = ended.out.splitlines()[0]
    assert " ".join(header.split()) == "wave scorer window size labeled cannot tell skipped erased open"
    assert ended.out.splitlines()[1].split()[-6:] == ["9", "2", "1", "1", "0", "5"]
    newest, first = call("labels", "status", "--json").content["waves"]
    assert (newest["scorer"], first["id"]) == ("faithfulness", wave)
    assert {name: sum(route[name] for route in first["routes"]) for name in ("size", "labeled", "open")} == {
        "size": 9, "labeled": 2, "open": 5
    }  # fmt: skip


def test_no_scores_are_an_error(store: TrackingStore, call: Call, tmp_path: Path) -> None:
    """The message says what is missing."""
    ended = call("labels", "draw")
    assert ended.code == 1
    assert "has both its text and a score of answer_relevancy" in ended.err
