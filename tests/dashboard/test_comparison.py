"""The comparison page: two periods, prompt versions or models."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.hostile import SERVICE as HOSTILE_SERVICE
from tests.dashboard.hostile import write_hostile_exchanges
from tests.dashboard.page_client import open_dashboard
from tests.dashboard.seeding import DROP, FINGERPRINTS, LEASE, NOW, OWNER, SEARCH, SERVICE
from tests.insights.situations import plain_text

from germane.exchange import Exchange, new_exchange_id, normalized_question, sampling_key_for
from germane.insights import ComparisonRequest, InsightContext, ViewParams, load_comparison
from germane.insights.comparison import ComparisonInsight
from germane.insights.comparison_context import _LabelUsage
from germane.insights.wording import comparison_sentence
from germane.score import Score, band_of
from germane.settings import load_settings
from germane.storage import SamplingDecision, TrackingStore

RELEVANCY = "answer_relevancy"
HTML = {"Accept": "text/html"}
SINCE_DROP = ViewParams(window="", since=NOW - DROP, until=NOW)
WEEK = ViewParams(window="7d", since=NOW - timedelta(days=7), until=NOW)


def compare(store: TrackingStore, view: ViewParams = WEEK, **given: Any) -> ComparisonInsight:
    """Load the data that the page shows."""
    context = InsightContext(store=store, settings=load_settings(database="sqlite://"), now=lambda: NOW)
    return load_comparison(context, view, ComparisonRequest(**given))


def text_of(page: str) -> str:
    """Return the visible text of a page on one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def write(store: TrackingStore, scores: Mapping[str, list[float]], fingerprint: str = "f1", **given: Any) -> None:
    """Write scored exchanges of one route, by prompt version, one minute apart and ending now."""
    values = [(version, value) for version, of_version in scores.items() for value in of_version]
    made = []
    for number, (version, _) in enumerate(values):
        trace = new_exchange_id()
        fields: dict[str, Any] = {"route": "ask", "question": "How do I pay?", "prompt_version": version, **given}
        exchange = Exchange(
            id=trace,
            trace_id=trace,
            span_id=trace[:16],
            service="shop",
            answer="By card.",
            started_at=NOW - timedelta(minutes=len(values) - number),
            sampling_key=sampling_key_for(trace),
            **fields,
        )
        made.append(exchange)
    write_scores(store, made, [value for _, value in values], fingerprint)


def write_scores(store: TrackingStore, made: Sequence[Exchange], values: Sequence[float], fingerprint: str) -> None:
    """Write exchanges with their scores."""
    store.exchanges.add(made)
    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in made], {RELEVANCY: fingerprint})
    by_id = {one.id: value for one, value in zip(made, values, strict=True)}
    claims = store.queue.claim_tasks(OWNER, {RELEVANCY: fingerprint}, limit=1000, lease=LEASE)
    results = [
        (
            task,
            Score(
                scorer=RELEVANCY,
                fingerprint=fingerprint,
                value=by_id[task.exchange_id],
                label=band_of(by_id[task.exchange_id]),
                scored_at=NOW,
            ),
        )
        for claim in claims
        for task in claim.tasks
    ]
    store.queue.complete_tasks(OWNER, results)


@BOTH
def test_compared_periods_have_the_same_numbers_as_the_report(week: Week) -> None:
    """Means, intervals and differences equal those of ``Store.trends.compare``, which ``germane report`` prints."""
    insight = compare(week.store, SINCE_DROP)
    expected = week.store.trends.compare(since=NOW - DROP, until=NOW, scorer=RELEVANCY, service=SERVICE)

    assert insight.verdict.state == "worse"
    assert insight.whole is not None
    shown = {line.route: line for line in (insight.whole, *insight.changes)}
    assert shown.keys() == {line.route for line in (*expected.services, *expected.routes)}
    for line in (*expected.services, *expected.routes):
        same = shown[line.route]
        assert (same.finding, same.fingerprint) == (line.finding, line.fingerprint)
        assert same.difference == pytest.approx(line.difference)
        assert same.interval == pytest.approx(line.interval)
        for mine, theirs in ((same.before, line.before), (same.after, line.after)):
            assert mine is not None
            assert theirs is not None
            assert (mine.n, mine.mean, mine.interval) == (
                theirs.n,
                pytest.approx(theirs.mean),
                pytest.approx(theirs.interval),
            )
    assert insight.changes[0].route == SEARCH


def test_each_link_of_a_comparison_leads_to_exactly_the_answers_of_one_side(page: TestClient, week: Week) -> None:
    """The list counts as many answers as the side has scores, for the whole service and for each route."""
    for query in ("since=2026-11-19T05:30", "by=prompt_version", "by=model"):
        text = page.get(f"/compare?{query}").text
        rows = re.findall(r'n=([\d,]+)[^"]*?<[^"]*?(?:class="note" )?href="(/answers\?[^"]+)"', text)
        assert len(rows) >= 6
        for n, link in rows:
            shown = page.get(html.unescape(link)).text
            counted = re.search(r"([\d,]+) matching answers", text_of(shown[shown.index("<h1>") :]))
            assert counted is not None
            assert counted[1] == n, link


def test_a_worse_version_is_named_with_both_means(week: Week) -> None:
    """Without a selection, the newest version is compared with the one before it."""
    insight = compare(week.store, by="prompt_version")

    assert (insight.labels, insight.verdict.state) == (["7", "6"], "worse")
    assert [side.condition for side in insight.verdict.sides] == [{"prompt_version": "6"}, {"prompt_version": "7"}]
    assert insight.verdict.route == SEARCH
    swapped = compare(week.store, by="prompt_version", old="7", new="6")
    assert swapped.verdict.state == "better"
    assert swapped.changes[0].difference == pytest.approx(-(insight.changes[0].difference or 0.0))


def test_a_later_drop_is_not_attributed_to_a_version_that_began_at_the_same_time(week: Week, page: TestClient) -> None:
    """The page names the other version, the onset and the deploy, as all pages do, and links to before and after it."""
    context = compare(week.store, by="prompt_version").context
    assert context is not None
    assert (context.began.day, context.began_together) == (17, {"model": "larch-2", "prompt_version": "7"})
    drop = context.later_drop
    assert drop is not None
    assert drop.deploy == 'whether it began before or after the deploy "index v42" cannot be decided'
    assert drop.route == SEARCH
    text = page.get("/compare?by=prompt_version").text
    (path,) = re.findall(r'href="([^"]+)">Compare the time before and after it<', text)
    query = parse_qs(urlsplit(html.unescape(path)).query)
    assert datetime.fromisoformat(query["since"][0]) == drop.onset
    assert compare(week.store, SINCE_DROP).context is None


def test_versions_that_began_at_different_times_are_compared_without_a_remark(store: TrackingStore) -> None:
    """Without an alert and with one model, there is nothing else to say."""
    write(store, {"1": [0.9, 0.8] * 60, "2": [0.1, 0.2] * 60})
    insight = compare(store, by="prompt_version")

    assert insight.verdict.state == "worse"
    assert insight.context is None


VERSIONS_BY_HOUR: Mapping[str, tuple[bool, list[tuple[int, str, str, int]]]] = {
    "together": (True, [(30, "2", "b", 30), (33, "2", "b", 30)]),
    "an hour later": (False, [(30, "2", "a", 30), (31, "2", "b", 30)]),
    "in other hours of the same day": (False, [(30, "2", "b", 10), (33, "2", "a", 25), (35, "1", "b", 25)]),
    "four in five": (False, [(30, "2", "b", 24), (30, "2", "a", 6)]),
}
"""For each service, whether prompt version 2 and model b began together, and its answers after those of version 1 and
model a: the hour, the version, the model and the number."""


def test_versions_began_together_if_they_share_the_first_hour_and_most_answers_of_each_hour(
    store: TrackingStore,
) -> None:
    """Answers on the same day do not suffice."""
    start = (NOW - timedelta(days=3)).replace(hour=0, minute=0)
    made = []
    for service, (_, groups) in VERSIONS_BY_HOUR.items():
        for hour, version, model, count in [(0, "1", "a", 30), *groups]:
            for number in range(count):
                id_ = new_exchange_id()
                moment = start + timedelta(hours=hour, minutes=number)
                exchange = Exchange(
                    id=id_, trace_id=id_, span_id=id_[:16], service=service, route="ask", question="Why?", answer="So.",
                    started_at=moment, sampling_key=sampling_key_for(id_), prompt_version=version, model=model,
                )  # fmt: skip
                made.append(exchange)
    write_scores(store, made, [0.9, 0.8] * (len(made) // 2), "f1")
    found = {}
    for service in VERSIONS_BY_HOUR:
        context = compare(store, replace(WEEK, service=service), by="prompt_version").context
        found[service] = context is not None and context.began_together == {"prompt_version": "2", "model": "b"}

    assert found == {service: expected for service, (expected, _) in VERSIONS_BY_HOUR.items()}


@pytest.mark.parametrize("labels", [1, 120])
def test_a_version_began_in_its_first_hour_however_many_others_there_are(store: TrackingStore, labels: int) -> None:
    """The rollup of a day combines labels beyond the hundred most frequent ones, and those of its hours more."""
    start = (NOW - timedelta(days=3)).replace(hour=0, minute=0)
    moments = [(start + timedelta(seconds=30 * number), f"old{number % labels}") for number in range(480)]
    moments += [(start + timedelta(hours=20), "new"), (start + timedelta(hours=30), "new")]
    made = [
        Exchange(
            id=(id_ := new_exchange_id()), trace_id=id_, span_id=id_[:16], service="shop", route="ask", question="Why?",
            answer="So.", started_at=moment, sampling_key=sampling_key_for(id_), prompt_version=version,
        )
        for moment, version in moments
    ]  # fmt: skip
    write_scores(store, made, [0.9, 0.8] * (len(made) // 2), "f1")
    store.rollups.update(breakdowns=["prompt_version", "model"])
    usage = _LabelUsage(store, RELEVANCY, "shop", start, NOW)

    assert usage.find_start("prompt_version", "new") == start + timedelta(hours=20)


def test_two_halves_of_the_data_are_compared_if_there_is_no_earlier_period(store: TrackingStore) -> None:
    """A new database leads to no empty page, and the page says what it compares."""
    write(store, {"1": [0.9, 0.8] * 100, "2": [0.1, 0.2] * 100})
    insight = compare(store)

    assert (insight.is_split, insight.verdict.state) == (True, "worse")
    assert insight.old is not None
    assert insight.new is not None
    assert insight.old.window[1] == insight.new.window[0]
    assert insight.old.window[0] >= NOW - timedelta(hours=12)
    with open_dashboard(store) as client:
        text = text_of(client.get("/compare").text)
    assert "its first half is compared with its second half" in text


def test_an_interval_that_excludes_zero_without_significance_has_a_footnote(page: TestClient) -> None:
    """The footnote gives the number of comparisons."""
    text = text_of(page.get("/compare?by=prompt_version").text)

    assert "not significant*" in text
    assert re.search(r"\* The interval of this single comparison excludes 0, but .* for \d\d comparisons\.", text)
    assert "all routes: too small to matter" in text


def test_a_side_with_fewer_than_twenty_scores_is_not_compared(store: TrackingStore) -> None:
    """With 19 scores on one side, the page shows neither a mean nor a difference for that side."""
    write(store, {"1": [0.9, 0.8] * 20, "2": [0.1, 0.2] * 9 + [0.1]})
    insight = compare(store, by="prompt_version")

    assert (insight.verdict.state, insight.verdict.counts) == ("few", (40, 19))
    with open_dashboard(store) as client:
        text = text_of(client.get("/compare?by=prompt_version").text)
    assert "(n=19, need 20)" in text
    assert not re.search(r"[\u2212+]0\.\d\d", text)


def test_two_sides_with_equal_scores_show_no_difference(store: TrackingStore) -> None:
    """The sentence does not claim that the sides are equal."""
    write(store, {"1": [0.9, 0.8] * 20, "2": [0.8, 0.9] * 20})
    insight = compare(store, by="prompt_version")

    assert insight.verdict.state == "unclear"
    assert not insight.verdict.has_small_difference


def test_a_difference_below_the_minimum_drop_is_not_reported_as_worse(store: TrackingStore) -> None:
    """The verdict states the minimum."""
    write(store, {"1": [0.90, 0.91] * 100, "2": [0.87, 0.88] * 100})
    insight = compare(store, by="prompt_version")

    assert (insight.verdict.state, insight.difference_tone) == ("unclear", "")
    assert insight.verdict.has_small_difference


def test_scores_of_different_judges_are_not_compared(store: TrackingStore) -> None:
    """If no fingerprint has scores on both sides, there is no difference."""
    write(store, {"1": [0.9] * 30}, fingerprint="f1")
    write(store, {"2": [0.1] * 30}, fingerprint="f2", route="ask")
    insight = compare(store, by="prompt_version")

    assert insight.verdict.state == "judge_changed"
    assert all(line.difference is None for line in insight.changes)


def test_only_the_shared_fingerprint_is_compared_and_other_scores_are_counted(store: TrackingStore) -> None:
    """The newest fingerprint with enough scores on both sides counts; scores with others are only counted."""
    write(store, {"1": [0.9, 0.8] * 15, "2": [0.4, 0.3] * 15}, fingerprint="f1")
    write(store, {"2": [0.9] * 25}, fingerprint="f2")
    insight = compare(store, by="prompt_version")

    assert (insight.verdict.state, insight.fingerprint, insight.other_fingerprints) == ("worse", "f1", 25)
    assert insight.changes[0].after is not None
    assert insight.changes[0].after.mean == pytest.approx(0.35)


def test_spelling_variants_of_a_question_are_compared_as_one_question(store: TrackingStore) -> None:
    """The page lists the answers of both sides to the same question."""
    write(store, {"1": [0.9, 0.8] * 15}, question="How do I  PAY")
    write(store, {"2": [0.1, 0.2] * 15}, fingerprint="f1", question="how do i pay?")
    insight = compare(store, by="prompt_version")
    (question,) = insight.questions

    assert insight.labels_compared == {"old": "1", "new": "2"}
    assert question.counts == (30, 30)
    assert question.comparison.finding == "dropped"
    with open_dashboard(store) as client:
        shown = client.get(f"/compare?by=prompt_version&question={question.key}").text
        missing = client.get("/compare?by=prompt_version&question=0123456789abcdef", headers=HTML)
    assert shown.count('href="/a/') == 40
    assert "and 10 more" in text_of(shown)
    assert missing.status_code == 404


def test_groups_by_question_contain_exactly_the_compared_scores(week: Week) -> None:
    """Together, the groups of a route contain as many scores as the comparison of the route."""
    insight = compare(week.store, SINCE_DROP, route=SEARCH)
    (line,) = insight.changes
    asked = {
        normalized_question(exchange.question or "")
        for exchange, score in week.seeded.scores
        if score.scorer == RELEVANCY and exchange.route == SEARCH and exchange.started_at >= NOW - DROP
    }

    assert line.after is not None
    assert len(insight.questions) == len(asked)
    assert sum(question.counts[1] for question in insight.questions) == line.after.n


@each(
    ("query", "expected"),
    [
        ("by=prompt_version&old=77", "Known: \u201c6\u201d, \u201c7\u201d"),
        ("by=model&new=larch", "did you mean \u201clarch-"),
        ("by=model&old=larch-1&new=larch-1", "Both sides are the same"),
        ("old=6&new=7", "Add by=prompt_version"),
        ("old_since=2026-11-02&old_until=2026-11-01", "The earlier period is empty"),
        ("by=model&window=24h&old=larch-1", "There is no model in this window named"),
    ],
)
def test_the_error_for_an_invalid_comparison_suggests_valid_values(page: TestClient, query: str, expected: str) -> None:
    """Unknown values are an error that suggests a similar one."""
    response = page.get(f"/compare?{query}", headers=HTML)

    assert response.status_code == 400
    assert expected in html.unescape(response.text)


def test_compared_periods_are_chosen_in_the_time_zone_of_the_visitor(page: TestClient) -> None:
    """The form redirects to a URL with absolute times."""
    page.cookies.set("germane_zone", "Asia/Kolkata")
    fields = {
        "since": "2026-11-19T11:00",
        "until": "",
        "old_since": "2026-11-18T11:00",
        "old_until": "2026-11-19T11:00",
    }
    found = page.get("/compare/periods", params={**fields, "by": "period", "route": SEARCH})

    assert found.status_code == 303
    shown = page.get(found.headers["location"])
    assert "18 Nov 11:00 to 19 Nov 11:00" in shown.text
    assert f'<option value="{SEARCH}" selected>' in shown.text


def test_overview_route_page_and_markers_link_to_a_comparison(page: TestClient) -> None:
    """The overview, the route page and each marker lead to a comparison."""
    overview, route = page.get("/").text, page.get(f"/r/{SEARCH}").text
    for text in (overview, route):
        links = {html.unescape(link) for link in re.findall(r'href="(/compare[^"]+)"', text)}
        assert {"prompt_version", "model"} == {found[1] for link in links if (found := re.search(r"by=(\w+)", link))}
        marked = [link for link in links if "since=" in link]
        assert marked
        assert all(page.get(link).status_code == 200 for link in links)
        assert all(("route=" in link) == (text is route or "old_since" in link) for link in marked)


def test_pages_link_to_a_comparison_of_the_time_before_and_after_the_onset(page: TestClient, week: Week) -> None:
    """Overview, route and alert lead to periods of equal length around the onset, on the route that fell."""
    for address in ("/", f"/r/{SEARCH}", f"/alerts/{week.seeded.open_alert}"):
        text = page.get(address).text
        (path,) = re.findall(r'href="(/compare[^"]+)">before and after the drop began', text)
        query = parse_qs(urlsplit(html.unescape(path)).query)
        begin, onset, again, end = (
            datetime.fromisoformat(query[name][0]) for name in ("old_since", "old_until", "since", "until")
        )
        assert onset - begin == end - again
        assert (onset, query["route"]) == (again, [SEARCH])
        assert 'class="verdict bad"' in page.get(html.unescape(path)).text


def test_chart_markers_link_to_a_comparison_of_the_time_before_and_after_them(page: TestClient, week: Week) -> None:
    """The label is a link in the picture, and so is its entry in the table."""
    for address in ("/", f"/r/{SEARCH}", f"/alerts/{week.seeded.open_alert}"):
        links = re.findall(r'<a href="(/compare[^"]+)"><text class="deploy"[^>]*>index v42<', page.get(address).text)
        assert links
        assert all(page.get(html.unescape(link)).status_code == 200 for link in links)


def test_hostile_names_and_questions_in_a_comparison_are_escaped(own_page: TestClient, own_week: Week) -> None:
    """Versions, models, routes and questions are shown as text."""
    write_hostile_exchanges(own_week.store)
    for by in ("period", "model", "prompt_version"):
        response = own_page.get("/compare", params={"by": by, "service": HOSTILE_SERVICE, "window": "24h"})
        assert response.status_code == 200
        assert "<script>window" not in response.text
        assert '" autofocus' not in response.text
        assert "\u202e" not in re.sub("<option.*?</option>", "", response.text)


def test_the_comparison_page_states_that_there_are_no_scores(store: TrackingStore) -> None:
    """The page states that there are no scores."""
    with open_dashboard(store) as client:
        assert plain_text(comparison_sentence(compare(store).verdict)) in text_of(client.get("/compare").text)
        assert FINGERPRINTS[RELEVANCY] not in client.get("/compare?by=model").text
