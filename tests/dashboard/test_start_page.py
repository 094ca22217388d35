"""The first steps, and pages without data or a database."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.http_server import NOW, PAGE, client_for, create_dashboard

from germane.dashboard import create_app
from germane.exchange import Exchange
from germane.score import Score
from germane.settings import load_settings
from germane.storage import SamplingDecision, TrackingStore, WorkerHeartbeat

SCORERS = {"answer_relevancy": "f1"}
LEASE = timedelta(minutes=1)
NOWHERE = "postgresql://somebody:hunter2@127.0.0.1:1/nothing"


def make_exchange(name: str) -> Exchange:
    """Return an exchange that is five minutes old."""
    texts: dict[str, Any] = {"question": "How do I pay?", "answer": "By card."}
    moment = NOW - timedelta(minutes=5)
    return Exchange(id=name, trace_id="t", span_id="s", service="shop", route="ask", started_at=moment, **texts)


def score_sampled(store: TrackingStore, *names: str) -> None:
    """Score the sampled exchanges."""
    store.sampling.assign_tasks([SamplingDecision(name, 1.0, "sampled") for name in names], SCORERS)
    tasks = [task for claim in store.queue.claim_tasks("w", SCORERS, limit=9, lease=LEASE) for task in claim.tasks]
    own: dict[str, Any] = {"scorer": "answer_relevancy", "fingerprint": "f1", "value": 0.7, "label": "high"}
    store.queue.complete_tasks("w", [(task, Score(**own)) for task in tasks])


def visible_text(page: TestClient, path: str = "/") -> str:
    """Return the visible text of a page."""
    answer = page.get(path, headers=PAGE)
    assert answer.status_code == 200, answer.text
    return " ".join(re.sub(r"<[^>]+>", " ", answer.text.partition("<main")[2]).split())


def test_the_start_page_of_an_empty_database_shows_the_first_steps(store: TrackingStore) -> None:
    """The code, the two commands and a live counter are shown instead of the overview."""
    page = client_for(create_dashboard(store))
    words, text = visible_text(page), page.get("/", headers=PAGE).text

    assert "Nothing has been captured yet." in words
    assert "import germane germane.start() @germane.observe" in words
    assert re.search(r"GERMANE_DATABASE='(sqlite|postgresql):\S+' python app.py", text)
    assert "germane serve" in words
    assert re.search(r'<p id="received" data-live[^>]*><b>0 exchanges received</b>', text)


def test_the_start_page_works_without_a_database_file(bare: Path) -> None:
    """The page does not create the file: it says that the application will, and works once the file exists."""
    with closing(TrackingStore(f"sqlite:///{bare}/later.db")) as store:
        page = client_for(create_dashboard(store))
        assert "which the application creates on its first start" in visible_text(page)
        assert not (bare / "later.db").exists()

        store.migrate()
        store.exchanges.add([make_exchange("a")])
        assert "1 exchange received" in visible_text(page, "/start")


def test_handlers_that_were_never_called_are_listed(store: TrackingStore) -> None:
    """The page shows the likely cause if they were in fact called; handlers with calls are not listed."""
    page = client_for(create_dashboard(store))
    store.exchanges.declare_routes("shop", ["ask", "search"])
    assert "Decorated but not called yet: ask in shop search in shop" in visible_text(page)

    store.exchanges.add([make_exchange("a")])
    score_sampled(store, "a")
    words = visible_text(page, "/start")
    assert "not called yet: search in shop" in words


def test_the_start_page_shows_why_exchanges_are_unscored(store: TrackingStore) -> None:
    """Each known cause is shown with its remedy."""
    page = client_for(create_dashboard(store))
    store.exchanges.add([make_exchange(f"e{number}") for number in range(12)])
    words = visible_text(page, "/start")
    assert "12 exchanges captured, none scored yet." in words
    assert "Not scored: no judge is configured." in words
    assert "germane doctor" in words

    with_judge = create_app(load_settings(database="sqlite://", base_url="http://127.0.0.1:1/v1"), store=store)
    assert "Not scored: Answers are scored only while a worker is running. Run germane worker" in visible_text(
        client_for(with_judge), "/start"
    )
    own: dict[str, Any] = {"id": "w1", "host": "h", "pid": 7, "service": "shop", "version": "1", "scorers": SCORERS}
    store.workers.heartbeat(WorkerHeartbeat(**own, problem="the key is rejected"), [], lease=LEASE)
    assert "Not scored: the worker is not using the judge: the key is rejected" in visible_text(page, "/start")


def test_the_overview_replaces_the_start_page_with_the_first_exchange(store: TrackingStore) -> None:
    """The first steps are still available at their own URL, and confirm that scoring works."""
    page = client_for(create_dashboard(store))
    assert "First steps" in visible_text(page)

    store.exchanges.add([make_exchange("a")])
    assert "First steps" not in visible_text(page)
    score_sampled(store, "a")
    assert "Setup complete: answers are captured and scored." in visible_text(page, "/start")


def test_hostile_route_names_on_the_start_page_are_escaped(store: TrackingStore) -> None:
    """Applications choose route names."""
    store.exchanges.declare_routes("<script>alert(1)</script>", ["<img src=x onerror=alert(1)>"])
    text = client_for(create_dashboard(store)).get("/", headers=PAGE).text

    assert "<script>alert" not in text
    assert "<img" not in text


@each("path", ["/", "/start", "/answers"])
def test_an_unreachable_database_is_reported_on_the_page(bare: Path, path: str) -> None:
    """No page hangs, stops the process or reveals a password; the page says what to check and offers a retry."""
    with closing(TrackingStore(NOWHERE)) as store:
        answer = client_for(create_dashboard(store)).get(path, headers=PAGE)

    assert answer.status_code == 503
    assert "hunter2" not in answer.text
    assert "cannot be reached" in answer.text
    assert "germane doctor" in answer.text
    assert "Try again" in answer.text


def test_missing_tables_are_reported_on_the_page(database_url: str, bare: Path) -> None:
    """The page names the command that creates them."""
    with closing(TrackingStore(database_url)) as store:
        if store.is_absent:
            (bare / "empty.db").touch()
            database_url = f"sqlite:///{bare}/empty.db"
    with closing(TrackingStore(database_url)) as store:
        answer = client_for(create_dashboard(store)).get("/", headers=PAGE)

    assert answer.status_code == 503
    assert "germane db upgrade" in answer.text


def test_an_unknown_path_gets_status_404(store: TrackingStore) -> None:
    """Browsers get a page, and programs get two lines of text; neither response repeats the path."""
    page = client_for(create_dashboard(store))
    for_people, for_programs = page.get("/<b>nowhere", headers=PAGE), page.get("/<b>nowhere")

    assert (for_people.status_code, for_programs.status_code) == (404, 404)
    assert 'href="/"' in for_people.text
    assert "<b>nowhere" not in for_people.text + for_programs.text
    assert for_programs.headers["content-type"].startswith("text/plain")
    assert page.post("/start").status_code == 403
