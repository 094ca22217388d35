"""Selected answers: links, labels, and the rows for open lists."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from urllib.parse import urlencode

import httpx2
from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import BOTH, HERE, Week, now
from tests.dashboard.form_helpers import csrf_token_of
from tests.dashboard.seeding import SEARCH

from germane.dashboard import create_app
from germane.dashboard.pages.answers import MAX_SELECTED
from germane.settings import load_settings

HTML = {"Accept": "text/html"}


def picked(text: str) -> list[str]:
    """Return the ids that can be selected on a page, in order."""
    return re.findall(r'<input type="checkbox"[^>]* name="id" value="([^"]+)"', text)


def query_for(ids: list[str], **more: str) -> str:
    """Return the query that selects answers."""
    return urlencode([*(("id", id_) for id_ in ids), *more.items()])


def test_the_link_to_selected_answers_does_not_depend_on_the_window(page: TestClient, week: Week) -> None:
    """Exactly these answers are listed, refusals included, whatever the window is."""
    text = page.get("/answers?refusals=show", headers=HTML).text
    ids = picked(text)[:3]
    for window in ("", "24h", "90d"):
        shown = page.get(f"/answers?{query_for(ids, scorer='answer_relevancy', window=window)}", headers=HTML).text
        assert sorted(picked(shown)) == sorted(ids)
        assert "3 of 3 selected answers" in shown
        assert shown.count(" checked>") == 3
    missing = page.get(f"/answers?{query_for([*ids, 'unknown'])}", headers=HTML).text
    assert "3 of 4 selected answers" in missing
    assert "The others have been deleted" in missing


def test_submitting_an_empty_selection_shows_no_answers(page: TestClient) -> None:
    """A form without a selected row shows no answers and saves none, rather than all."""
    shown = page.get("/answers?selection=1", headers=HTML).text

    assert picked(shown) == []
    assert "None of the selected answers was found" in shown
    assert page.get("/answers.jsonl?selection=1", headers=HTML).status_code == 409


def test_number_of_selected_answers_is_limited(page: TestClient, week: Week) -> None:
    """A whole page can be selected; more ids are an error that states the limit."""
    ids = [one.id for one in week.seeded.exchanges]

    assert page.get(f"/answers?{query_for(ids[:MAX_SELECTED], state='any')}", headers=HTML).text.count("checked>") == 50
    response = page.get(f"/answers?{query_for(ids[: MAX_SELECTED + 1])}")
    assert response.status_code == 400
    assert "at most 50 times" in response.text


def label(page: TestClient, verdict: str, ids: list[str], query: str = "", token: str | None = None) -> httpx2.Response:
    """Submit the form for the selected rows."""
    token = csrf_token_of(page, f"/answers?{query}") if token is None else token
    data = {"id": ids, "csrf": token, "selection": "1"}
    return page.post(f"/answers/label/{verdict}?{query}", data=data, headers=HTML)


@BOTH
def test_labeling_selected_answers_returns_to_the_same_page_of_the_list(own_page: TestClient, own_week: Week) -> None:
    """The labels are stored once per answer, and the form leads back to the same page of the list."""
    query = f"route={SEARCH}&sort=newest"
    onward = re.search(r'rel="next" href="/answers\?([^"]+)"', own_page.get(f"/answers?{query}", headers=HTML).text)
    assert onward is not None
    query = html.unescape(onward[1])
    ids = picked(own_page.get(f"/answers?{query}", headers=HTML).text)[:2]
    response = label(own_page, "bad", [*ids, ids[0], "unknown"], query)
    back = response.headers["location"]

    assert response.status_code == 303
    assert back.startswith("/answers?")
    assert back.endswith("#list")
    text = own_page.get(back.partition("#")[0], headers=HTML).text
    assert "2 answers labeled bad." in text
    assert picked(text)[:2] == ids
    for id_ in ids:
        detail = own_week.store.answers.load_detail(id_)
        assert detail is not None
        assert [one.score for one in detail.feedback if one.user == "dashboard"] == [0.0]


@each(
    ("verdict", "count", "token", "status"),
    [("good", 1, "", 403), ("good", 0, None, 400), ("good", 51, None, 400), ("fine", 1, None, 404)],
)
def test_invalid_labels_for_selected_answers_are_rejected(
    page: TestClient, week: Week, verdict: str, count: int, token: str | None, status: int
) -> None:
    """A form without the token, a selection or a known label stores nothing."""
    ids = [one.id for one in week.seeded.exchanges[:count]]
    before = len(week.store.labels.list_feedback(limit=1_000))

    assert label(page, verdict, ids, token=token).status_code == status
    assert len(week.store.labels.list_feedback(limit=1_000)) == before


def test_the_csrf_token_is_submitted_only_by_buttons_that_write(page: TestClient) -> None:
    """Otherwise, it would become part of the URL of the selection."""
    text = page.get("/answers", headers=HTML).text
    (form,) = re.findall(r'<form id="selection".*?</form>', text, re.DOTALL)

    assert form.count('name="csrf"') == form.count('formmethod="post"') == 2
    assert not re.search(r'<input[^>]*name="csrf"', form)


def test_a_read_only_dashboard_offers_no_labels_for_a_selection(week: Week) -> None:
    """The selection can still be shown and saved."""
    app = create_app(load_settings(database="sqlite://"), store=week.store, now=now, read_only=True)
    text = TestClient(app, "http://127.0.0.1", client=HERE).get("/answers", headers=HTML).text

    assert "Save selection as test set" in text
    assert "Label good" not in text


def test_a_copied_link_shows_the_same_answers_at_a_later_time(week: Week) -> None:
    """The link has an absolute time range and names the scorer, so that new answers do not change the page."""
    clock = [week.seeded.now - timedelta(hours=5)]
    app = create_app(load_settings(database="sqlite://"), store=week.store, now=lambda: clock[0])
    page = TestClient(app, "http://127.0.0.1", client=HERE)
    for query in ("sort=newest&window=24h", "group=question&window=24h", f"route={SEARCH}&below=0.5"):
        clock[0] = week.seeded.now - timedelta(hours=5)
        text = page.get(f"/answers?{query}", headers=HTML).text
        link = re.search(r'data-copy="([^"]+)"', text)
        assert link is not None
        clock[0] = week.seeded.now
        later = page.get(html.unescape(link[1]), headers=HTML).text
        assert "window=" not in link[1]
        assert "scorer=answer_relevancy" in link[1]
        for pattern in (r'name="id" value="([^"]+)"', r"<b>([\d,]+)</b></td>"):
            assert re.findall(pattern, later) == re.findall(pattern, text), query
    assert page.get("/answers?sort=newest&window=24h", headers=HTML).text != later


def test_an_open_list_can_request_only_its_new_rows(page: TestClient, week: Week) -> None:
    """The rows are those of the page, newest first, at most one page, and under the same filter."""
    text = page.get("/answers?sort=newest&window=7d&route=ask", headers=HTML).text
    link = re.search(r'data-live-rows="([^"]+)"', text)
    assert link is not None
    address = html.unescape(link[1])
    ids = picked(text)
    at = {one.id: one.started_at for one in week.seeded.exchanges}
    some = page.get(f"{address}&{urlencode({'since': at[ids[4]].isoformat()})}")

    assert picked(some.text) == ids[:5]
    assert "<form" not in some.text
    assert picked(page.get(address).text) == ids
    assert "data-live-rows" not in page.get("/answers?route=ask", headers=HTML).text
    assert "data-live-rows" not in page.get(f"/answers?sort=newest&until={week.seeded.now:%Y-%m-%d}", headers=HTML).text
