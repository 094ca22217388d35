"""The pages of drawn answers: what they show, and what their forms store."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.form_helpers import submit_form
from tests.dashboard.hostile import SERVICE, TEXTS, write_hostile_exchanges
from tests.dashboard.page_client import open_dashboard
from tests.dashboard.seeding import NOW, SEARCH

from germane.storage import DrawnCounts, LabelPopulation, LabelWave, TrackingStore

HTML = {"Accept": "text/html"}


def draw(store: TrackingStore, count: int = 3, **given: str) -> LabelWave:
    """Draw a wave of the sample week."""
    names = {"scorer": "answer_relevancy", **given}
    return store.draws.draw(LabelPopulation(since=NOW - timedelta(days=8), until=NOW, **names), count)


def newest(week: Week) -> LabelWave:
    """Return the wave that is not in the sample week."""
    (wave,) = [wave for wave in week.store.draws.list_waves() if wave.id != week.seeded.wave]
    return wave


def main_of(page: TestClient, path: str) -> str:
    """Return the content of a page."""
    text = page.get(path, headers=HTML).text
    return text[text.index("<main") : text.index("</main>")]


def test_a_form_that_is_submitted_twice_draws_one_wave(own_page: TestClient, own_week: Week) -> None:
    """Somebody double-clicks, or loads the page again that the form led to; another visit draws another wave."""
    shown = own_page.get("/labels", headers=HTML).text
    (new_wave,) = re.findall(r'name="wave" value="([^"]+)"', shown)
    fields = {"window": "7d", "wave": new_wave}
    pages = {submit_form(own_page, "/labels", "/labels/draw", **fields).headers["location"] for _ in range(2)}
    assert pages == {f"/labels/{new_wave}"}
    waves = [wave.id for wave in own_week.store.draws.list_waves()]
    assert sorted(waves) == sorted([new_wave, own_week.seeded.wave])

    submit_form(own_page, "/labels", "/labels/draw", window="7d", wave="<script>")
    assert len(own_week.store.draws.list_waves()) == 3


@BOTH
def test_the_button_draws_fifty_answers_and_leads_to_the_first(own_page: TestClient, own_week: Week) -> None:
    """By default of the last 30 days, for the scorer that pages show; the list of waves then leads to the rest."""
    own_seeded = own_week.store

    def first_after(since: datetime) -> datetime:
        return min(one.started_at for one in own_week.seeded.exchanges if one.started_at >= since)

    response = submit_form(own_page, "/labels", "/labels/draw", window="7d", service="", scorer="")
    wave = newest(own_week)
    assert (response.status_code, response.headers["location"]) == (303, f"/labels/{wave.id}")
    assert (wave.scorer, wave.until, wave.since) == ("answer_relevancy", NOW, first_after(NOW - timedelta(days=7)))
    assert wave.total == DrawnCounts(open=50)
    assert f'<a class="button" href="/labels/{wave.id}">Continue' in own_page.get("/labels").text
    assert "0 of 50" in own_page.get("/labels").text

    submit_form(own_page, "/labels", "/labels/draw", window="forever", scorer="faithfulness", service="handbook")
    (other,) = own_seeded.draws.list_waves(scorer="faithfulness")
    assert other.since == first_after(NOW - timedelta(days=30))
    since = NOW - timedelta(hours=2)
    fields = {"since": since.isoformat(), "until": NOW.isoformat(), "scorer": "answer_relevancy"}
    submit_form(own_page, "/labels", "/labels/draw", **fields)
    assert first_after(since) in {one.since for one in own_seeded.draws.list_waves()}
    response = submit_form(own_page, "/labels", "/labels/draw", service="nobody")
    assert response.status_code == 409
    assert "No answer from" in response.text


def test_an_answer_is_shown_without_anything_that_could_anchor_a_person(
    own_page: TestClient, own_seeded: TrackingStore
) -> None:
    """Neither its scores, its judge and its labels nor its route and model are on the page."""
    wave = draw(own_seeded, 1, route=SEARCH)
    _, exchange_id = own_seeded.draws.next_answer(wave.id) or (0, "")
    submit_form(own_page, f"/a/{exchange_id}", f"/a/{exchange_id}/feedback", verdict="bad", comment="oh dear")
    detail = own_seeded.answers.load_detail(exchange_id)
    assert detail is not None

    text = main_of(own_page, f"/labels/{wave.id}")

    assert detail.exchange.question is not None
    assert detail.exchange.question.split("<")[0][:20] in text
    assert "1 of 1" in text
    assert "<details><summary>" in text
    judges = {score.judge for score in detail.scores if score.judge}
    hidden = {"oh dear", SEARCH, "relevancy", str(detail.exchange.model), *judges}
    assert judges
    assert {one for one in hidden if one in text} == set()
    assert not re.search(r"\b0\.\d\d\b", text)


def test_each_button_is_stored_with_the_name_of_the_person(own_page: TestClient, own_seeded: TrackingStore) -> None:
    """The name is remembered; without one, labels belong to the dashboard, like others that are given there."""
    wave = draw(own_seeded, 6)
    path = f"/labels/{wave.id}"
    for number, verdict in enumerate(("answers", "partly", "does_not", "cannot_tell", "skipped", "answers")):
        _, exchange_id = own_seeded.draws.next_answer(wave.id) or (0, "")
        assert f"{number + 1} of 6" in main_of(own_page, path)
        by = "" if number == 5 else " Ada "
        response = submit_form(own_page, path, path, exchange_id=exchange_id, verdict=verdict, by=by)
        assert (response.status_code, response.headers["location"]) == (303, path)
        if number < 5:
            assert 'value="Ada"' in main_of(own_page, path)

    assert own_seeded.draws.get_wave(wave.id).total == DrawnCounts(labeled=4, cannot_tell=1, skipped=1)
    labels = own_seeded.draws.list_labels([wave.id])
    assert [dict(label.by_person) for label in labels] == [{"Ada": 1}, {"Ada": 0.5}, {"Ada": 0}, {"dashboard": 1}]
    end = main_of(own_page, path)
    assert "This wave is complete" in end
    assert re.findall(r"<b>(\d+)</b>", end) == ["4", "1", "1", "0"]
    for by, left in (("", 1), ("", 1), ("Ada", 2)):
        response = submit_form(own_page, path, path, verdict="undo", by=by)
        assert (response.status_code, response.headers["location"]) == (303, path)
        assert own_seeded.draws.get_wave(wave.id).total.open == left
    assert own_page.get(f"{path}?result=other").status_code == 400


def test_labels_from_elsewhere_do_not_belong_to_a_wave(own_page: TestClient, own_seeded: TrackingStore) -> None:
    """Also if their answer is in one."""
    wave = draw(own_seeded, 1)
    _, exchange_id = own_seeded.draws.next_answer(wave.id) or (0, "")
    submit_form(own_page, f"/a/{exchange_id}", f"/a/{exchange_id}/feedback", verdict="good")
    submit_form(own_page, "/answers", "/answers/label/bad", id=exchange_id)

    assert own_seeded.draws.list_labels([wave.id]) == []
    assert own_seeded.draws.get_wave(wave.id).total == DrawnCounts(open=1)


@each(
    ("fields", "status"),
    [
        ({}, 400),
        ({"verdict": "good", "exchange_id": "x"}, 400),
        ({"verdict": "answers", "exchange_id": "x"}, 409),
        ({"verdict": "answers"}, 409),
    ],
)
def test_an_invalid_label_is_rejected(
    own_page: TestClient, own_seeded: TrackingStore, fields: dict[str, str], status: int
) -> None:
    """The error says what to do."""
    path = f"/labels/{draw(own_seeded, 1).id}"
    response = submit_form(own_page, path, path, **fields)

    assert response.status_code == status
    assert "Go back" in response.text or "Open the page again" in response.text
    assert own_page.post(path, data={"verdict": "answers"}).status_code == 403  # without a token
    assert own_page.post("/labels/draw").status_code == 403


def test_hostile_texts_are_escaped(own_page: TestClient, own_week: Week) -> None:
    """Of questions, answers, routes and services, on an answer, at the end and in the list of waves."""
    store = own_week.store
    write_hostile_exchanges(store)
    wave = draw(store, 50, service=SERVICE)
    seen = ""
    while following := store.draws.next_answer(wave.id):
        seen += main_of(own_page, f"/labels/{wave.id}")
        store.draws.settle(wave.id, following[1], "answers", user=TEXTS["script"])
    seen += main_of(own_page, f"/labels/{wave.id}") + main_of(own_page, "/labels")

    assert "&lt;script&gt;window" in seen
    assert "<script>window" not in seen
    assert '" autofocus' not in seen
    assert "This wave is complete" in seen
    for unknown in ("x", "%00", "a%0Ab", "%F0%9F%98%80" * 30):
        assert own_page.get(f"/labels/{unknown}", headers=HTML).status_code == 404


def test_erased_answers_are_counted_and_not_shown(own_page: TestClient, own_seeded: TrackingStore) -> None:
    """The wave ends with the answers that still have their text."""
    wave = draw(own_seeded, 4)
    own_seeded.retention.prune(texts_before=NOW)

    end = main_of(own_page, f"/labels/{wave.id}")

    assert "This wave is complete" in end
    assert re.findall(r"<b>(\d+)</b>", end) == ["0", "0", "0", "4"]


def test_a_read_only_dashboard_shows_waves_without_forms(own_seeded: TrackingStore) -> None:
    """Visitors see the progress, but cannot draw or label."""
    wave = draw(own_seeded, 2)
    with open_dashboard(own_seeded, read_only=True) as client:
        for path in ("/labels", f"/labels/{wave.id}"):
            assert '<form method="post"' not in client.get(path).text
        assert "0 of 2" in client.get("/labels").text
        assert client.post("/labels/draw").status_code == 403


def test_skipping_the_rest_finishes_a_wave_and_shows_the_number(
    own_page: TestClient, own_seeded: TrackingStore
) -> None:
    """The answers that are left count as skipped. Before, no page shows a number. A wave shows that of its window."""
    wave = draw(own_seeded, 40)
    for given in range(25):
        found = own_seeded.draws.next_answer(wave.id)
        assert found is not None
        own_seeded.draws.settle(wave.id, found[1], "answers" if given % 3 else "does_not")
    path = f"/labels/{wave.id}"
    assert "According to people" not in main_of(own_page, path)

    submit_form(own_page, path, path, verdict="skip_rest", by="Ann")

    assert own_seeded.draws.get_wave(wave.id).total == DrawnCounts(labeled=25, skipped=15)
    number = r"According to people</dt><dd><b>0\.\d\d\u2013[01]\.\d\d</b>\s*<small>25 labels, "
    assert re.search(number, main_of(own_page, path))
    population = LabelPopulation(since=NOW - timedelta(days=8), until=NOW - timedelta(hours=1), scorer=wave.scorer)
    other = own_seeded.draws.draw(population, 30)
    while following := own_seeded.draws.next_answer(other.id):
        own_seeded.draws.settle(other.id, following[1], "answers")
    pages = [main_of(own_page, f"/labels/{one.id}") for one in (wave, other)]
    assert [f"<small>{count} labels, " in page for count, page in zip((25, 30), pages, strict=True)] == [True, True]
    assert own_seeded.draws.undo(wave.id, user="Ann") is not None
    assert "According to people" not in main_of(own_page, path)
