"""The page of a session."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import BOTH, HERE, Week, now
from tests.dashboard.test_answer import text_of

from germane.dashboard import create_app
from germane.exchange import Exchange, new_exchange_id
from germane.insights import session_path
from germane.insights.sessions import MAX_TURNS
from germane.settings import load_settings
from germane.storage import TrackingStore
from germane.storage.answers import search

HTML = {"Accept": "text/html"}
NAMES = (
    "a/b",
    "..",
    ".",
    "a/../b",
    "?x=1#y",
    "100% &?",
    "//evil.example/",
    "<script>alert(1)</script>",
    "\u202eetuor",
    " ",
)


def turns_of(text: str) -> list[str]:
    """Return the ids of the turns on a page, in order."""
    return re.findall(r'<b><a href="/a/([0-9a-f]+)', text)


@pytest.fixture
def empty_page(store: TrackingStore) -> Iterator[TestClient]:
    """A client for a database to which the test writes."""
    app = create_app(load_settings(database="sqlite://"), store=store, now=now)
    with TestClient(app, "http://127.0.0.1", client=HERE) as client:
        yield client


def write_session(store: TrackingStore, name: str, count: int, text: str = "Why?") -> Sequence[Exchange]:
    """Write the turns of a session, one per minute, and one turn of another session."""
    exchanges = [
        replace(
            Exchange.from_texts(f"{text} {number}", text),
            id=new_exchange_id(),
            session=name,
            user="ada",
            started_at=now() - timedelta(minutes=count - number),
        )
        for number in range(count)
    ]
    other = replace(exchanges[0], id=new_exchange_id(), session=f"{name}x")
    store.exchanges.add([*exchanges, other])
    return exchanges


def test_an_answer_links_to_its_session_whose_turns_are_in_time_order(page: TestClient, week: Week) -> None:
    """The page shows each turn with its scores and label, the number of turns, the time span and the user."""
    exchange = week.seeded.exchanges[90]
    turns = [one for one in week.seeded.exchanges if one.session == exchange.session]
    text = page.get(f"/a/{exchange.id}", headers=HTML).text
    link = re.search(r'href="(/sessions/[^"]+)"', text)
    assert link is not None
    address = html.unescape(link[1])
    shown = text_of(page, address)

    assert turns_of(page.get(address, headers=HTML).text) == [one.id for one in turns]
    assert f"{len(turns)} turns in this window" in shown
    assert f"(n={len(turns)}, need 20)" in shown or "no data" in shown
    for turn in turns:
        assert str(turn.question) in shown
        assert str(turn.user) in shown
        for score in week.store.answers.get_scores([turn.id]).get(turn.id, []):
            assert ("refusal" if score.label == "noncommittal" else f"{score.value:.2f}") in shown


def test_a_session_can_be_exported_and_shared(page: TestClient, week: Week) -> None:
    """The file contains all turns with an answer, and the copied link has an absolute time range."""
    exchange = week.seeded.exchanges[90]
    turns = [one.id for one in week.seeded.exchanges if one.session == exchange.session and one.answer is not None]
    text = page.get(f"/sessions/{exchange.session}", headers=HTML).text
    saved = re.search(r'href="(/answers\.jsonl[^"]+)"', text)
    copied = re.search(r'data-copy="([^"]+)"', text)
    assert saved is not None
    assert copied is not None
    rows = page.get(html.unescape(saved[1])).text.splitlines()

    assert [json.loads(row)["id"] for row in rows] == turns[::-1]
    assert "since=" in copied[1]
    assert "window=" not in copied[1]
    assert turns_of(page.get(html.unescape(copied[1]), headers=HTML).text) == turns_of(text)


@each("name", NAMES)
@BOTH
def test_a_session_id_can_contain_any_character(empty_page: TestClient, store: TrackingStore, name: str) -> None:
    """The link on the answer's page leads to the session, and its text is escaped."""
    exchanges = write_session(store, name, 3)
    text = empty_page.get(f"/a/{exchanges[1].id}", headers=HTML).text
    link = re.search(r'href="(/sessions/[^"]+)"', text)
    assert link is not None
    response = empty_page.get(html.unescape(link[1]), headers=HTML)

    assert html.unescape(link[1]).startswith(session_path(name))
    assert response.status_code == 200
    assert turns_of(response.text) == [one.id for one in exchanges]
    assert "<script>alert" not in response.text


def test_a_long_session_is_split_into_pages(empty_page: TestClient, store: TrackingStore) -> None:
    """The newest turns come first; earlier pages continue without gaps, and every page is small."""
    exchanges = write_session(store, "long", 2 * MAX_TURNS + 5, "<&>" * 30_000)
    found: list[str] = []
    address: str | None = "/sessions/long"
    while address is not None:
        text = empty_page.get(address, headers=HTML).text
        assert len(text) < 200_000
        found = [*turns_of(text), *found]
        onward = re.search(r'rel="prev" href="([^"]+)"', text)
        address = html.unescape(onward[1]) if onward else None

    assert found == [one.id for one in exchanges]


def test_the_page_of_an_unknown_session_suggests_a_longer_window(empty_page: TestClient, store: TrackingStore) -> None:
    """The page is not an error, because the turns may be older; an id that cannot exist is one."""
    write_session(store, "known", 1)

    assert "No turns of this session in this window." in text_of(empty_page, "/sessions/unknown")
    assert empty_page.get(f"/sessions/{'x' * 501}").status_code == 404
    assert empty_page.get("/sessions/").status_code == 404
    assert empty_page.get("/sessions/known?after=x").status_code == 400


@BOTH
def test_a_truncated_session_search_says_how_far_back_it_went(
    empty_page: TestClient, store: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the window has too many exchanges, the page says so and continues from there."""
    monkeypatch.setattr(search, "MAX_EXCHANGES_SCANNED", 2)
    write_session(store, "s", 6)
    text = empty_page.get("/sessions/s", headers=HTML).text

    assert "Only the newest answers were searched, back to" in text
    assert "Earlier" in text
