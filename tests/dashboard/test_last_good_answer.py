"""The last good answer to the same question, next to an answer with a low score."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.hostile import TEXTS
from tests.dashboard.page_client import open_dashboard
from tests.dashboard.seeding import FINGERPRINTS, LEASE, NOW, OWNER, SEARCH

from germane.exchange import Context, Exchange, new_exchange_id
from germane.insights.last_good import compare_contexts
from germane.score import Score, band_of
from germane.storage import SamplingDecision, TrackingStore

RELEVANCY = "answer_relevancy"
TEXT = st.text("ab", min_size=1, max_size=2)


def section(page: TestClient, exchange_id: str) -> str | None:
    """Return the HTML of the panel on an answer's page, or None."""
    text = page.get(f"/a/{exchange_id}").text
    found = re.search(r'<section class="panel" id="last-good">.*?</section>', text, re.DOTALL)
    return None if found is None else found[0]


def newest_before(week: Week, asked: Exchange) -> Exchange:
    """Return the newest exchange before the onset of the open alert with the same question and a good score."""
    alert = week.store.alerts.get(week.seeded.open_alert)
    assert alert is not None
    assert alert.onset is not None
    until = alert.onset if asked.route == alert.route and alert.onset <= asked.started_at else asked.started_at
    return max(
        (
            exchange
            for exchange, score in week.seeded.scores
            if score.scorer == RELEVANCY and not score.is_low and score.label != "noncommittal"
            if (exchange.route, exchange.question) == (asked.route, asked.question)
            if exchange.started_at < until
        ),
        key=lambda exchange: exchange.started_at,
    )


def test_a_low_answer_is_shown_next_to_the_last_good_answer(page: TestClient, week: Week) -> None:
    """Both answers and their contexts are shown, with the contexts that are missing now and those that are new."""
    low = [exchange for exchange, score in week.seeded.scores if score.scorer == RELEVANCY and score.is_low]
    compared = 0
    for asked in [exchange for exchange in reversed(low) if exchange.route == SEARCH][:5]:
        good, shown = newest_before(week, asked), section(page, asked.id)
        assert shown is not None
        assert f'href="/a/{good.id}"' in shown
        assert ", before the drop began on" in shown
        text = html.unescape(shown)
        assert good.answer is not None
        assert good.answer[:60] in text
        then, now = ({context.text for context in exchange.contexts} for exchange in (good, asked))
        assert text.count("missing now</span>") == len(then - now)
        assert text.count(">new</span>") == len(now - then)
        compared += len(then - now)
    assert compared


@BOTH
def test_last_good_answer_without_an_alert_is_the_newest_one(page: TestClient, week: Week) -> None:
    """On a route without an open alert, or for an answer from before the drop, no drop is mentioned."""
    low = [exchange for exchange, score in week.seeded.scores if score.scorer == RELEVANCY and score.is_low]
    asked = next(exchange for exchange in reversed(low) if exchange.route != SEARCH)
    shown = section(page, asked.id)

    assert shown is not None
    assert f'href="/a/{newest_before(week, asked).id}"' in shown
    assert "before the drop" not in shown


def test_a_good_answer_is_shown_without_the_last_good_answer(page: TestClient, week: Week) -> None:
    """The panel is shown only for low scores."""
    good = next(
        exchange for exchange, score in reversed(week.seeded.scores) if score.scorer == RELEVANCY and not score.is_low
    )
    assert section(page, good.id) is None


def test_the_first_answer_to_a_question_is_shown_without_a_last_good_answer(store: TrackingStore) -> None:
    """Without an earlier good answer, there is no panel."""
    (asked,) = write(store, [(0.1, "Anything new?", ())])
    with open_dashboard(store) as client:
        assert section(client, asked.id) is None


def test_a_hostile_last_good_answer_is_escaped(store: TrackingStore) -> None:
    """The texts, ids and versions of both answers are shown as text."""
    contexts = [Context(text=text, id=text[:100]) for text in TEXTS.values()]
    _, asked = write(store, [(0.9, "Anything new?", contexts), (0.1, "anything new", contexts[:1])])
    with open_dashboard(store) as client:
        shown = section(client, asked.id)

    assert shown is not None
    assert "<script>" not in shown
    assert '" autofocus' not in shown
    assert "{{ 7 * 7 }}" in html.unescape(shown)


def write(store: TrackingStore, answers: Sequence[tuple[float, str, Sequence[Context]]]) -> list[Exchange]:
    """Write answers with a score, a question and contexts, oldest first."""
    made = []
    for number, (_, question, contexts) in enumerate(answers):
        trace = new_exchange_id()
        exchange = Exchange(
            id=trace,
            trace_id=trace,
            span_id=trace[:16],
            service="shop",
            route="ask",
            question=question,
            answer=TEXTS["script"],
            contexts=tuple(contexts),
            model=TEXTS["attribute"],
            prompt_version=TEXTS["script"],
            started_at=NOW - LEASE / (number + 1),
        )
        made.append(exchange)
    store.exchanges.add(made)
    fingerprints = {RELEVANCY: FINGERPRINTS[RELEVANCY]}
    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in made], fingerprints)
    values = {exchange.id: value for exchange, (value, _, _) in zip(made, answers, strict=True)}
    claims = store.queue.claim_tasks(OWNER, fingerprints, limit=100, lease=LEASE)
    results = [
        (task, Score(scorer=RELEVANCY, fingerprint=task.fingerprint, value=value, label=band_of(value), scored_at=NOW))
        for claim in claims
        for task in claim.tasks
        for value in [values[task.exchange_id]]
    ]
    store.queue.complete_tasks(OWNER, results)
    return made


@given(st.lists(TEXT, max_size=5), st.lists(TEXT, max_size=5))
def test_contexts_of_both_answers_are_compared_by_text(then: list[str], now: list[str]) -> None:
    """Order, count and ids are kept, and a context is shared if and only if the other side has its text."""
    old, new = compare_contexts([Context(text, id=f"a{n}") for n, text in enumerate(then)], [*map(Context, now)])

    assert [one.context.text for one in old] == then
    assert [one.context.text for one in new] == now
    assert [one.is_shared for one in old] == [text in now for text in then]
    assert [one.is_shared for one in new] == [text in then for text in now]
