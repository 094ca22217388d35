"""The page for one answer: its scores with explanations, labels, and actions."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import BOTH, Week, now
from tests.dashboard.form_helpers import submit_form
from tests.dashboard.hostile import TEXTS, write_hostile_exchanges
from tests.dashboard.seeding import FINGERPRINTS, LEASE, NOW

from germane.annotation import RecordedScore
from germane.dashboard import create_app
from germane.exchange import Exchange
from germane.insights.answers import TraceLink, build_trace_link, describe_answer_sampling
from germane.score import Score, UnscoredReason
from germane.settings import load_settings
from germane.storage import AnswerFilter, TrackingStore

HTML = {"Accept": "text/html"}
RELEVANCY = {"answer_relevancy": FINGERPRINTS["answer_relevancy"]}
Picked = Callable[[Exchange, Score], bool]


def text_of(page: TestClient, address: str) -> str:
    """Return the visible text of a page, with single spaces."""
    response = page.get(address, headers=HTML)
    assert response.status_code == 200, response.text[:500]
    main = re.split(r"<main[^>]*>|</main>", response.text)[1] if "<main" in response.text else response.text
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", main)).split())


def newest_exchange(week: Week, fits: Picked, scorer: str = "answer_relevancy") -> tuple[Exchange, Score]:
    """Return the newest matching exchange."""
    return next(
        (exchange, score)
        for exchange, score in reversed(week.seeded.scores)
        if score.scorer == scorer and fits(exchange, score)
    )


def is_low(_: Exchange, score: Score) -> bool:
    """Return whether the score is low and not a refusal."""
    return score.is_low and bool(score.value)


def is_refusal(_: Exchange, score: Score) -> bool:
    """Return whether the score is a refusal."""
    return score.label == "noncommittal"


@pytest.mark.slow
def test_a_low_score_is_explained(page: TestClient, week: Week) -> None:
    """The page shows the generated questions with their similarities and mean, and the percentile rank."""
    exchange, score = newest_exchange(week, is_low)

    text = text_of(page, f"/a/{exchange.id}")

    assert f"{score.value:.2f} Answer relevancy low" in text
    assert re.search(r"lower than \d+% of answers in the surrounding week \(n=\d+\)", text)
    assert f"Question {exchange.question} Answer {exchange.answer}" in text
    for question in score.details["questions"]:
        assert f"{question['text']} {question['similarity']:.2f}" in text
    assert f"mean of {len(score.details['questions'])} {score.value:.2f}" in text
    assert f"Judge {score.judge}" in text
    assert f"Embedder {score.embedder}" in text
    assert f"Fingerprint {score.fingerprint}" in text
    assert f"Tokens {score.input_tokens} input, {score.output_tokens} output" in text
    assert "Prompt version 7" in text
    assert "Sampled, with probability 0.80: stands for 1.25 captured answers (1 / 0.80)." in text


def test_the_percentile_rank_of_a_score_is_relative_to_its_route(page: TestClient, week: Week) -> None:
    """The rank counts higher scores with the same fingerprint in the surrounding week."""
    exchange, score = newest_exchange(week, is_low)
    values = week.seeded.values(route=exchange.route)
    day = exchange.started_at.replace(hour=0, minute=0, second=0, microsecond=0)
    since = day - timedelta(days=3)
    around = [
        found.value or 0.0
        for one, found in week.seeded.scores
        if (found.scorer, one.route) == ("answer_relevancy", exchange.route)
        and since <= one.started_at < since + timedelta(days=7)
    ]
    higher = sum(int(one * 100) > int((score.value or 0.0) * 100) for one in around) / len(around)

    assert f"lower than {int(higher * 100)}% of answers" in text_of(page, f"/a/{exchange.id}")
    assert len(values) >= len(around)


def test_a_refusal_is_shown_with_the_matched_text(page: TestClient, week: Week) -> None:
    """A refusal has no generated questions and no bar for its similarity."""
    exchange, _ = newest_exchange(week, is_refusal)

    text, raw = text_of(page, f"/a/{exchange.id}"), page.get(f"/a/{exchange.id}", headers=HTML).text

    assert "refusal Answer relevancy" in text
    assert f"Matched text: {exchange.answer}" in text.replace("\u201c", "").replace("\u201d", "")
    assert "Generated question" not in text
    assert "of answers in the surrounding week are refusals" in text
    head, _, _ = raw.partition("Retrieved contexts")
    assert 'class="meter' not in head


def test_all_scores_of_an_answer_are_explained(page: TestClient, week: Week) -> None:
    """Claims have verdicts, and each score has its own judge and fingerprint."""
    exchange, score = newest_exchange(
        week, lambda _, score: score.details["supported"] < score.details["total"], "faithfulness"
    )

    text = text_of(page, f"/a/{exchange.id}?scorer=answer_relevancy")

    assert f"Fingerprint {FINGERPRINTS['faithfulness']}" in text
    assert f"{score.details['supported']} of {score.details['total']} claims supported" in text
    assert "not supported" in text
    assert f"Retrieved contexts {len(exchange.contexts)}" in text
    assert "quoted by the judge" in text or "not quoted" in text


def test_a_failed_task_is_shown_with_its_reason_and_retries(page: TestClient, week: Week) -> None:
    """A failure does not count as 0: the page shows the error, the failed attempts and the next attempt."""
    (failed,) = week.store.answers.search(AnswerFilter(state="failed", scorer="answer_relevancy"), limit=1).answers
    waiting = next(
        one
        for one in week.store.answers.search(AnswerFilter(state="waiting", scorer="answer_relevancy"), limit=50).answers
        if one.task and one.task.reason
    )
    assert failed.task is not None
    assert failed.task.reason is not None

    text, other = text_of(page, f"/a/{failed.exchange.id}"), text_of(page, f"/a/{waiting.exchange.id}")

    assert text.count("not scored") == 1
    assert f"Answer relevancy : failed: {failed.task.reason.value.replace('_', ' ')} {failed.task.error}" in text
    assert "Answer relevancy : not scored: judge rate limited" in other
    assert re.search(r", 1 failed attempt ?, next attempt in \d min", other), other


def test_the_drawer_and_the_page_of_an_answer_show_the_same_content(page: TestClient, week: Week) -> None:
    """The drawer and the page are rendered from the same template."""
    exchange, _ = newest_exchange(week, is_low)

    drawer = page.get(f"/a/{exchange.id}?part=drawer&route=docs-search", headers=HTML).text

    assert "<html" not in drawer
    assert "<h1" not in drawer
    assert drawer.lstrip().startswith("<article")
    assert text_of(page, f"/a/{exchange.id}").split("Question", 1)[1][:300] in " ".join(
        html.unescape(re.sub(r"<[^>]+>", " ", drawer)).split()
    )


def test_links_to_neighboring_answers_keep_the_filter(page: TestClient, week: Week) -> None:
    """The links lead from the worst to the next worst answer on the same route, and back."""
    listed = page.get("/answers.json?route=docs-search&window=24h").json()["answers"]
    ids = [row["exchange_id"] for row in listed]

    raw = page.get(f"/a/{ids[1]}?route=docs-search&window=24h", headers=HTML).text

    assert f'rel="prev" href="/a/{ids[0]}?window=24h&amp;route=docs-search"' in raw
    assert f'rel="next" href="/a/{ids[2]}?window=24h&amp;route=docs-search"' in raw
    assert 'href="/answers?window=24h&amp;route=docs-search"' in raw
    assert re.search(r">2 of \d+ by lowest score<", raw)


def test_json_of_an_answer_contains_all_details(page: TestClient, week: Week) -> None:
    """The JSON has its own URL, and is also returned to clients that accept JSON."""
    exchange, score = newest_exchange(week, is_low)

    found = page.get(f"/a/{exchange.id}.json").json()
    asked = page.get(f"/a/{exchange.id}", headers={"Accept": "application/json"}).json()

    assert found == asked
    assert found["schema_version"] == 1
    assert found["exchange"]["question"] == exchange.question
    ours = next(one for one in found["scores"] if one["scorer"] == "answer_relevancy")
    assert (ours["value"], ours["details"]) == (score.value, score.details)


def test_an_unknown_answer_gets_status_404(page: TestClient) -> None:
    """The page says so and suggests a next step."""
    for address in ("/a/nobody", "/a/%00", "/a/nobody.json"):
        response = page.get(address, headers=HTML)
        assert response.status_code == 404
        assert "There is no answer with this id." in response.text


@pytest.mark.parametrize(("verdict", "score"), [("good", 1.0), ("bad", 0.0)])
def test_a_label_is_shown_and_replaces_an_earlier_one(
    own_page: TestClient, own_week: Week, verdict: str, score: float
) -> None:
    """The label appears immediately; a second one from the same visitor replaces it."""
    exchange, _ = newest_exchange(own_week, lambda _, found: is_low(_, found) and not _labels(own_week.store, _))
    address = f"/a/{exchange.id}?route=docs-search"
    (before,) = own_week.store.labels.count_disagreements(scorer="answer_relevancy")

    sent = submit_form(
        own_page,
        address,
        f"/a/{exchange.id}/feedback",
        verdict=verdict,
        comment=" <b>no</b> ",
        back="route=docs-search",
        next="",
    )
    text = text_of(own_page, sent.headers["location"])
    (after,) = own_week.store.labels.count_disagreements(scorer="answer_relevancy")

    assert sent.status_code == 303
    assert sent.headers["location"] == f"/a/{exchange.id}?route=docs-search&result={verdict}#people"
    assert "Label stored: the answer " in text
    assert "<b>no</b>" in text
    assert (after.labeled, after.count) == (before.labeled + 1, before.count + (verdict == "good"))
    assert f"People disagree with this judge on {after.count} of {after.labeled} labeled answers" in text
    (label,) = _labels(own_week.store, exchange)
    assert (label.score, label.comment, label.user, label.created_at) == (score, "<b>no</b>", "dashboard", NOW)

    submit_form(own_page, address, f"/a/{exchange.id}/feedback", verdict="good")
    assert len(_labels(own_week.store, exchange)) == 2
    assert "replaced by a later label" in text_of(own_page, address)
    (last,) = own_week.store.labels.count_disagreements(scorer="answer_relevancy")
    assert last.labeled == before.labeled + 1


def test_labels_lead_through_the_list_to_its_end(own_page: TestClient, own_week: Week) -> None:
    """Without JavaScript too, each label opens the next answer of the list, and the last answer stays open."""
    matching = "sort=newest&scorer=answer_relevancy&low=1&route=docs-search&text=how&window=24h"
    listed = [row["exchange_id"] for row in own_page.get(f"/answers.json?{matching}").json()["answers"]]
    labeled = len(own_page.get(f"/answers.json?{matching}&labeled=yes").json()["answers"])
    assert f"· {labeled} labeled" in text_of(own_page, f"/answers?{matching}")
    address = f"/a/{listed[0]}?{matching}"
    for answer, following in pairwise([*listed, listed[-1]]):
        shown = own_page.get(address, headers=HTML).text.partition('class="label-form"')[2]
        form = {
            name: html.unescape(re.findall(f'name="{name}" value="([^"]*)"', shown)[0]) for name in ("back", "next")
        }
        sent = submit_form(own_page, address, f"/a/{answer}/feedback", verdict="bad", **form)
        address = sent.headers["location"]
        assert urlsplit(address).path == f"/a/{following}"
        assert dict(parse_qsl(matching)).items() <= dict(parse_qsl(urlsplit(address).query)).items()
        assert "Label stored: the" in text_of(own_page, address)
        assert _labels(own_week.store, own_week.store.answers.get_exchanges([answer])[answer])[-1].score == 0.0
    assert f"· {len(listed)} labeled" in text_of(own_page, f"/answers?{matching}")


def test_an_answer_is_placed_among_the_scores_that_its_page_shows(own_page: TestClient, own_week: Week) -> None:
    """Its position counts the scores of the scorer that is shown first, even if another scorer's are lower."""
    store = own_week.store
    (worst, second) = store.answers.worst(scorer="answer_relevancy", limit=2)
    _record(store, "thumbs", [second.exchange, *(exchange for exchange, _ in own_week.seeded.scores[:5])])

    assert "1 of " in text_of(own_page, f"/a/{worst.exchange.id}?sort=lowest")
    assert "2 of " in text_of(own_page, f"/a/{second.exchange.id}?sort=lowest")


def test_labels_are_not_compared_with_scores_from_outside(own_page: TestClient, own_week: Week) -> None:
    """People can disagree with a judge; a score that the application recorded is no judge's."""
    exchange, _ = newest_exchange(own_week, lambda one, _: bool(_labels(own_week.store, one)))
    _record(own_week.store, "thumbs", [exchange])

    assert "People disagree with this judge" in text_of(own_page, f"/a/{exchange.id}")
    assert "People disagree" not in text_of(own_page, f"/a/{exchange.id}?scorer=thumbs")


def _record(store: TrackingStore, name: str, exchanges: Sequence[Exchange]) -> None:
    """Record the lowest score for some answers, as the application would."""
    store.exchanges.record_scores(
        [RecordedScore(exchange_id=each.id, name=name, value=-1.0, recorded_at=NOW) for each in exchanges]
    )


def _labels(store: TrackingStore, exchange: Exchange) -> Any:
    sheet = store.answers.load_detail(exchange.id)
    assert sheet is not None
    return sheet.feedback


def test_an_invalid_label_is_rejected(own_page: TestClient, own_week: Week) -> None:
    """Nothing is written, and the redirect never leaves the dashboard."""
    exchange, _ = newest_exchange(own_week, lambda _, found: is_low(_, found) and not _labels(own_week.store, _))

    refused = submit_form(own_page, f"/a/{exchange.id}", f"/a/{exchange.id}/feedback", verdict="perhaps")
    elsewhere = submit_form(
        own_page, f"/a/{exchange.id}", f"/a/{exchange.id}/feedback", verdict="bad", back="\r\nX: //evil.example"
    )

    assert refused.status_code == 400
    assert len(_labels(own_week.store, exchange)) == 1
    assert elsewhere.headers["location"] == f"/a/{exchange.id}?result=bad#people"


@BOTH
def test_rescoring_keeps_the_old_score_until_the_new_one_is_stored(own_page: TestClient, own_week: Week) -> None:
    """The page says that the answer is being rescored."""
    exchange, score = newest_exchange(own_week, is_low)

    sent = submit_form(own_page, f"/a/{exchange.id}", f"/a/{exchange.id}/rescore", scorer="answer_relevancy")
    text = text_of(own_page, sent.headers["location"])

    assert sent.status_code == 303
    assert "Queued for scoring. The current score stays until the new one replaces it." in text
    assert "Answer relevancy is being scored again" in text
    assert f"{score.value:.2f} Answer relevancy" in text

    claims = own_week.store.queue.claim_tasks("me", RELEVANCY, limit=999, lease=LEASE)
    (task,) = (task for claim in claims for task in claim.tasks if task.exchange_id == exchange.id)
    own_week.store.queue.complete_tasks(
        "me", [(task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.875))]
    )

    text = text_of(own_page, f"/a/{exchange.id}")
    assert "0.88 Answer relevancy" in text
    assert "being scored again" not in text


def test_a_failed_answer_that_is_being_rescored_has_no_score_yet(own_page: TestClient, own_week: Week) -> None:
    """A score from another scorer does not take its place."""
    (failed,) = own_week.store.answers.search(AnswerFilter(state="failed", scorer="answer_relevancy"), limit=1).answers

    submit_form(own_page, f"/a/{failed.exchange.id}", f"/a/{failed.exchange.id}/rescore", scorer="answer_relevancy")
    text = text_of(own_page, f"/a/{failed.exchange.id}")

    assert "Answer relevancy : waiting to be scored" in text
    assert "this score stays" not in text
    assert "not scored" in text


def test_an_answer_that_was_not_sampled_can_be_scored_on_request(own_page: TestClient, own_week: Week) -> None:
    """A request overrides the sampling decision, and the weight records it."""
    found = own_week.store.answers.search(AnswerFilter(state="skipped", reason=UnscoredReason.NOT_SAMPLED), limit=1)
    exchange = found.answers[0].exchange

    sent = submit_form(own_page, f"/a/{exchange.id}", f"/a/{exchange.id}/rescore")
    sheet = own_week.store.answers.load_detail(exchange.id)

    assert "result=ready" in sent.headers["location"]
    assert sheet is not None
    assert {one.state for one in sheet.tasks} == {"pending"}
    assert (sheet.sampling_reason, sheet.sampling_probability) == ("always", 1.0)


def test_the_read_only_page_of_an_answer_has_no_forms(week: Week) -> None:
    """The page offers no action that would be rejected."""
    exchange, _ = newest_exchange(week, is_low)
    app = create_app(load_settings(database="sqlite://"), store=week.store, now=now, read_only=True)
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 50_000)) as page:
        raw = page.get(f"/a/{exchange.id}", headers=HTML).text

    assert 'method="post"' not in raw
    assert "People disagree with this judge" in raw


@BOTH
def test_erased_text_of_an_answer_is_marked_as_erased(own_page: TestClient, own_week: Week) -> None:
    """Scores remain, and the answer cannot be rescored."""
    exchange, score = newest_exchange(own_week, is_low)
    own_week.store.retention.prune(texts_before=NOW)

    text = text_of(own_page, f"/a/{exchange.id}")

    assert f"{score.value:.2f} Answer relevancy" in text
    assert "Question (erased or not stored) Answer (erased or not stored)" in text
    assert "Text erased" in text
    assert "Score again" not in text


@pytest.mark.slow
@BOTH
def test_hostile_answers_are_shown_in_full_and_escaped(own_page: TestClient, own_week: Week) -> None:
    """The page and the drawer are checked."""
    for exchange in write_hostile_exchanges(own_week.store):
        for part in ("", "?part=drawer"):
            response = own_page.get(f"/a/{exchange.id}{part}", headers=HTML)
            assert response.status_code == 200
            for bad in ("<script>window", "<svg onload", "<img src=x", "<b>Jack", ' onfocus="'):
                assert bad not in response.text
    assert len(TEXTS) == 14


def test_the_link_to_a_trace_contains_only_ids(week: Week) -> None:
    """The link sends no referrer."""
    exchange, _ = newest_exchange(week, is_low)
    settings_ = load_settings(
        database="sqlite://", trace_url="https://phoenix.example.com/projects/x/traces/{trace_id}#{span_id}"
    )
    with TestClient(
        create_app(settings_, store=week.store, now=now), base_url="http://127.0.0.1", client=("127.0.0.1", 50_000)
    ) as page:
        raw = page.get(f"/a/{exchange.id}", headers=HTML).text

    address = f"https://phoenix.example.com/projects/x/traces/{exchange.trace_id}#{exchange.span_id}"
    assert f'href="{address}" rel="noreferrer noopener" target="_blank">Open in phoenix.example.com</a>' in raw


@each("trace_id", ["", "../x", "a b", "\u0660", "{span_id}"])
def test_an_invalid_trace_id_gets_no_link(trace_id: str) -> None:
    """An exchange that was imported from a file may have any trace id."""
    exchange = Exchange.from_texts("q", "a")
    odd = type(exchange)(**{name: getattr(exchange, name) for name in exchange.__slots__} | {"trace_id": trace_id})

    assert build_trace_link("https://x.example/{trace_id}", odd) is None
    assert build_trace_link(None, exchange) is None
    assert build_trace_link("https://x.example/{trace_id}", exchange) == TraceLink(
        host="x.example", url=f"https://x.example/{'0' * 32}"
    )


def test_the_sampling_decision_for_an_answer_is_explained(week: Week) -> None:
    """Undecided exchanges, and reasons stored by other versions, are explained too."""
    undecided = week.store.answers.load_detail(week.seeded.exchanges[-1].id)
    drawn = week.store.answers.load_detail(newest_exchange(week, is_low)[0].id)
    assert undecided is not None
    assert drawn is not None

    assert describe_answer_sampling(undecided) == "Not decided yet."
    assert (
        describe_answer_sampling(drawn)
        == "Sampled, with probability 0.80: stands for 1.25 captured answers (1 / 0.80)."
    )
