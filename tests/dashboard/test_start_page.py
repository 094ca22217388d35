"""What is shown before there is anything to show, and where there can be nothing."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.dashboard.http_server import NOW, PAGE, a_dashboard, knocking

from germane.dashboard import create_app
from germane.exchange import Exchange
from germane.score import Score
from germane.settings import load_settings
from germane.storage import SamplingDecision, TrackingStore, WorkerHeartbeat

SCORERS = {"answer_relevancy": "f1"}
LEASE = timedelta(minutes=1)
NOWHERE = "postgresql://somebody:hunter2@127.0.0.1:1/nothing"


def an_exchange(name: str) -> Exchange:
    """Return an exchange of five minutes ago."""
    texts: dict[str, Any] = {"question": "How do I pay?", "answer": "By card."}
    moment = NOW - timedelta(minutes=5)
    return Exchange(id=name, trace_id="t", span_id="s", service="shop", route="ask", started_at=moment, **texts)


def score(store: TrackingStore, *names: str) -> None:
    """Score exchanges that are drawn."""
    store.sampling.assign_tasks([SamplingDecision(name, 1.0, "sampled") for name in names], SCORERS)
    tasks = [task for claim in store.queue.claim_tasks("w", SCORERS, limit=9, lease=LEASE) for task in claim.tasks]
    own: dict[str, Any] = {"scorer": "answer_relevancy", "fingerprint": "f1", "value": 0.7, "label": "high"}
    store.queue.complete_tasks("w", [(task, Score(**own)) for task in tasks])


def shown(page: TestClient, path: str = "/") -> str:
    """Return the words of a page."""
    answer = page.get(path, headers=PAGE)
    assert answer.status_code == 200, answer.text
    return " ".join(re.sub(r"<[^>]+>", " ", answer.text.partition("<main")[2]).split())


def test_an_empty_database_shows_the_first_steps(store: TrackingStore) -> None:
    """What to write, the two commands, and a counter that refreshes itself stand where the overview will be."""
    page = knocking(a_dashboard(store))
    words, text = shown(page), page.get("/", headers=PAGE).text

    assert "Nothing has been captured yet." in words
    assert "import germane germane.start() @germane.observe" in words
    assert re.search(r"GERMANE_DATABASE='(sqlite|postgresql):\S+' python app.py", text)
    assert "germane serve" in words
    assert re.search(r'<p id="received" data-live[^>]*><b>0 exchanges received</b>', text)


def test_a_file_that_nobody_has_made_is_no_error(bare: Path) -> None:
    """The page says that the application makes it, makes none itself, and goes on once it is there."""
    with closing(TrackingStore(f"sqlite:///{bare}/later.db")) as store:
        page = knocking(a_dashboard(store))
        assert "which the application creates on its first start" in shown(page)
        assert not (bare / "later.db").exists()

        store.migrate()
        store.exchanges.add([an_exchange("a")])
        assert "1 exchange received" in shown(page, "/start")


def test_decorated_handlers_that_were_never_called_are_named(store: TrackingStore) -> None:
    """With what is wrong where somebody did call them; one that was called is not named."""
    page = knocking(a_dashboard(store))
    store.exchanges.declare_routes("shop", ["ask", "search"])
    assert "Decorated but not called yet: ask in shop search in shop" in shown(page)

    store.exchanges.add([an_exchange("a")])
    score(store, "a")
    words = shown(page, "/start")
    assert "not called yet: search in shop" in words


def test_captured_and_not_scored_says_why(store: TrackingStore) -> None:
    """Each reason that can be known is told, with what to do about it."""
    page = knocking(a_dashboard(store))
    store.exchanges.add([an_exchange(f"e{number}") for number in range(12)])
    words = shown(page, "/start")
    assert "12 exchanges captured, none scored yet." in words
    assert "Not scored: no judge is configured." in words
    assert "germane doctor" in words

    with_judge = create_app(load_settings(database="sqlite://", base_url="http://127.0.0.1:1/v1"), store=store)
    assert "Not scored: Answers are scored only while a worker runs: run germane worker" in shown(
        knocking(with_judge), "/start"
    )
    own: dict[str, Any] = {"id": "w1", "host": "h", "pid": 7, "service": "shop", "version": "1", "scorers": SCORERS}
    store.workers.heartbeat(WorkerHeartbeat(**own, problem="the key is rejected"), [], lease=LEASE)
    assert "Not scored: the worker does not use the judge: the key is rejected" in shown(page, "/start")


def test_the_overview_comes_with_the_first_exchange(store: TrackingStore) -> None:
    """From then on the first steps stand at their own address only, and say that it works once it does."""
    page = knocking(a_dashboard(store))
    assert "First steps" in shown(page)

    store.exchanges.add([an_exchange("a")])
    assert "First steps" not in shown(page)
    score(store, "a")
    assert "Setup complete: answers are captured and scored." in shown(page, "/start")


def test_hostile_names_of_handlers_are_text(store: TrackingStore) -> None:
    """A route is what an application calls it."""
    store.exchanges.declare_routes("<script>alert(1)</script>", ["<img src=x onerror=alert(1)>"])
    text = knocking(a_dashboard(store)).get("/", headers=PAGE).text

    assert "<script>alert" not in text
    assert "<img" not in text


@pytest.mark.parametrize("path", ["/", "/start", "/answers"])
def test_a_database_that_is_away_is_said_to_be_away(bare: Path, path: str) -> None:
    """No page hangs, ends the process or tells a password; it says what to look at, and that one may try again."""
    with closing(TrackingStore(NOWHERE)) as store:
        answer = knocking(a_dashboard(store)).get(path, headers=PAGE)

    assert answer.status_code == 503
    assert "hunter2" not in answer.text
    assert "cannot be reached" in answer.text
    assert "germane doctor" in answer.text
    assert "Try again" in answer.text


def test_tables_that_are_missing_are_said_to_be_missing(database_url: str, bare: Path) -> None:
    """The command that makes them is named."""
    with closing(TrackingStore(database_url)) as store:
        if store.is_absent:
            (bare / "empty.db").touch()
            database_url = f"sqlite:///{bare}/empty.db"
    with closing(TrackingStore(database_url)) as store:
        answer = knocking(a_dashboard(store)).get("/", headers=PAGE)

    assert answer.status_code == 503
    assert "germane db upgrade" in answer.text


def test_what_is_not_there_leads_back(store: TrackingStore) -> None:
    """A page says what may have happened; a program gets two lines of text; neither repeats what was asked for."""
    page = knocking(a_dashboard(store))
    for_people, for_programs = page.get("/<b>nowhere", headers=PAGE), page.get("/<b>nowhere")

    assert (for_people.status_code, for_programs.status_code) == (404, 404)
    assert 'href="/"' in for_people.text
    assert "<b>nowhere" not in for_people.text + for_programs.text
    assert for_programs.headers["content-type"].startswith("text/plain")
    assert page.post("/start").status_code == 403
