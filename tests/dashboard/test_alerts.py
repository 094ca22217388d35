"""Pages about alerts: state, notifications, and actions."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.hostile import SERVICE as HOSTILE_SERVICE
from tests.dashboard.hostile import TEXTS
from tests.dashboard.page_client import csrf_token, open_dashboard, post_form, write_alert
from tests.dashboard.seeding import FINGERPRINTS, NOW, add_second_service

from germane.alert import Silence
from germane.alerting.facts import alert_facts
from germane.insights.formatting import format_alert
from germane.storage import TrackingStore


def test_open_and_resolved_alerts_are_listed_with_notifications(page: TestClient, week: Week) -> None:
    """Each alert has its message, its mean with n and interval, and the delivery state on each channel."""
    text = page.get("/alerts").text
    opened, over = text.split('id="resolved"')[0], text.split('id="resolved"')[1]

    (alert,) = week.store.alerts.list_open()
    (resolved,) = week.store.alerts.search(state="resolved")
    assert (alert_facts(alert).kind, alert_facts(resolved).kind) == ("dropped", "works_again")
    assert format_alert(alert).partition(" since ")[0] in html.unescape(opened)
    assert re.search(r"0\.[456]\d \(95% interval 0\.\d\d\u20130\.\d\d, n=\d+\)", opened)
    assert "baseline 0.8" in opened
    assert re.search(r"oncall <span[^>]*>undelivered</span>", opened)
    assert re.search(r"slack <span[^>]*>sent</span>", opened)
    assert f"/alerts/{week.seeded.resolved_alert}" in over
    assert format_alert(resolved).partition(", after ")[0] in html.unescape(over)


def test_scorers_with_a_provisional_baseline_are_listed_first(page: TestClient) -> None:
    """The page shows when each baseline will be complete, and which baseline is used in the meantime."""
    text = page.get("/alerts").text

    assert re.search(r"The baseline of faithfulness in <code[^>]*>handbook</code> is provisional until", text)
    assert ">active</span>" in text
    assert ">provisional</span>" in text
    assert page.get("/alerts.json").json()["learning"][0]["provisional"] is True


def test_the_url_of_the_alert_list_contains_the_filters(own_seeded: TrackingStore) -> None:
    """The filters are state, rule, severity and service."""
    add_second_service(own_seeded)
    write_alert(own_seeded, "mine", labels={"service": "mobile", "scorer": "answer_relevancy", "route": "mine"})
    with open_dashboard(own_seeded) as client:
        shown = {query: client.get(f"/alerts.json?{query}").json() for query in QUERIES}

    ids = {query: [one["type"] for one in (*found["open"], *found["resolved"])] for query, found in shown.items()}
    assert ids == QUERIES


QUERIES = {
    "": ["mean_threshold", "drop", "scorer_error"],
    "state=open": ["mean_threshold", "drop"],
    "state=resolved": ["scorer_error"],
    "rule=mean_threshold": ["mean_threshold"],
    "severity=critical": ["drop"],
    "service=mobile": ["mean_threshold"],
    "service=handbook&severity=warning": ["scorer_error"],
}


@BOTH
def test_the_list_of_resolved_alerts_is_paginated(store: TrackingStore) -> None:
    """Each alert is listed once, and links lead in both directions."""
    for number in range(30):
        began = NOW - timedelta(hours=number)
        write_alert(
            store, f"a{number:02d}", state="resolved", starts_at=began, resolved_at=NOW, resolve_reason="recovered"
        )
    with open_dashboard(store) as client:
        first = client.get("/alerts.json?rule=mean_threshold").json()
        second = client.get("/alerts.json", params={"rule": "mean_threshold", "after": first["after"]}).json()
        text = client.get("/alerts?rule=mean_threshold").text

    assert [one["id"] for one in (*first["resolved"], *second["resolved"])] == [
        f"a{number:02d}" for number in range(30)
    ]
    assert second["after"] is None
    assert re.search(r'rel="next" href="/alerts\?after=[^"]*rule=mean_threshold"', text)


def test_the_page_of_an_alert_shows_all_details(page: TestClient, week: Week) -> None:
    """The page has a chart with baseline and markers, contributors, worst answers, a timeline and notifications."""
    alert = week.store.alerts.get(week.seeded.open_alert)
    assert alert is not None
    text = page.get(f"/alerts/{alert.id}").text

    for expected in ("baseline 2: ", ">onset<", ">fired<", "index v42", "Contributors", "status 404", "larch-2"):
        assert expected in text
    for exchange_id in alert.exchange_ids:
        assert f'href="/a/{exchange_id}?window=30d' in text
    assert re.search(r"docs-search.*?0\.80.*?0\.36", text, re.DOTALL)
    assert text.count("<svg") > 2


def test_the_page_of_an_alert_names_the_change_before_the_onset_in_local_time(page: TestClient, week: Week) -> None:
    """A marker that was added after the alert fired is named, too."""
    page.cookies.set("germane_zone", "Asia/Kolkata")
    text = page.get(f"/alerts/{week.seeded.open_alert}").text

    assert "Thu 19 Nov 2026, 12:09 IST" in text
    assert "whether it began before or after the deploy &#34;index v42&#34; cannot be decided" in text
    assert "95% interval" in re.sub(r"<[^>]+>", "", text.partition("Estimated onset")[2])[:120]


def test_contributors_to_an_alert_are_shown_with_means_and_intervals(page: TestClient, week: Week) -> None:
    """Means before and since the onset have n and interval; with fewer than 20 answers, there is no mean or change."""
    text = page.get(f"/alerts/{week.seeded.open_alert}").text
    rows = re.findall(r"<tr><td>(?:route|scorer|attribute) .*?</tr>", text, re.DOTALL)
    means = [cell for row in rows for cell in re.findall(r'data-label="(?:Before|Since)">(.*?)<', row)]

    assert len(means) == 2 * len(rows) >= 4
    assert [cell for cell in means if "95% interval" not in cell and "not enough data (n=" not in cell] == []
    assert [row for row in rows if "not enough data" in row and 'class="end"><b' in row] == []


def test_the_judge_is_named_as_the_cause_on_the_pages_of_its_alerts(own_seeded: TrackingStore) -> None:
    """A change of the judge is about a scorer in all services; a drop may be caused by one."""
    found = {"cause": "judge_drift", "onset": NOW, "value": -0.08}
    labels = {"scorer": "answer_relevancy"}
    shift = {"size": -0.08, "interval": [-0.1, -0.06], "round": NOW.isoformat()}
    write_alert(own_seeded, "drifted", rule="judge_drift", type="judge_drift", labels=labels, **found)
    write_alert(own_seeded, "docs", rule="drop", type="drop", details={"judge_since": shift}, **found)
    with open_dashboard(own_seeded) as client:
        drifted, drop = client.get("/alerts/drifted").text, client.get("/alerts/docs").text

    assert "<h1>Judge drift</h1>" in drifted
    assert "all routes of all services" in drifted
    assert "New anchors are drawn, with new baselines." in drifted
    assert "<h1>Judge scores lower on" in drop
    assert "Likely cause: the judge, the model that scores answers, scores lower than before." in drop


def test_an_alert_without_a_scorer_has_no_chart(own_seeded: TrackingStore) -> None:
    """An alert about an exhausted budget is shown without a chart."""
    write_alert(own_seeded, "spent", rule="budget_exhausted", type="budget_exhausted", labels={}, message="spent.")
    with open_dashboard(own_seeded) as client:
        answer = client.get("/alerts/spent")

    assert answer.status_code == 200
    assert "around the alert" not in answer.text


def test_an_unknown_alert_gets_status_404(page: TestClient) -> None:
    """The page suggests a next step and does not repeat the requested id."""
    answer = page.get("/alerts/%3Cscript%3E", headers={"accept": "text/html"})

    assert answer.status_code == 404
    assert "There is no alert with this id." in answer.text
    assert "<script>" not in answer.text.replace("<script src", "")


def test_acknowledging_an_alert_shows_and_remembers_the_name(own_page: TestClient, own_week: Week) -> None:
    """The form returns to the alert, and later forms are prefilled with the name."""
    path = f"/alerts/{own_week.seeded.open_alert}"
    answer = post_form(own_page, f"{path}/ack", path, by="Zoë <b>")

    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}?done=ack")
    assert "No reminders will be sent until the alert resolves" in own_page.get(answer.headers["location"]).text
    alert = own_week.store.alerts.get(own_week.seeded.open_alert)
    assert alert is not None
    assert (alert.acknowledged_by, alert.state) == ("Zoë <b>", "firing")
    text = own_page.get(path).text
    assert 'value="Zoë &lt;b&gt;"' in text
    assert "Acknowledged by Zoë &lt;b&gt;" in text


def test_resolving_an_alert_notifies_the_notified_channels(own_seeded: TrackingStore, own_week: Week) -> None:
    """Channels that received the alert receive its resolution; a second attempt is rejected with a reason."""
    channels = {"slack": {"type": "slack", "url": "env:SLACK_ADDRESS"}}
    path = f"/alerts/{own_week.seeded.open_alert}"
    with open_dashboard(own_seeded, channels=channels) as client:
        carried = csrf_token(client, path)
        assert client.post(f"{path}/resolve", data={"csrf": carried, "by": "ann"}).status_code == 303
        again = client.post(f"{path}/resolve", data={"csrf": carried})

    waiting = [
        (one.notification.channel, one.notification.type) for one in own_seeded.notifications.search(status="waiting")
    ]
    assert ("slack", "resolved") in waiting
    alert = own_seeded.alerts.get(own_week.seeded.open_alert)
    assert alert is not None
    assert alert.resolve_reason == "by_hand"
    assert again.status_code == 409
    assert "is already resolved" in again.text


@pytest.mark.parametrize(
    ("what", "names"), [("this", {"rule", "service", "scorer", "route"}), ("rule", {"rule", "service"})]
)
def test_an_alert_is_silenced_for_the_chosen_duration(
    own_page: TestClient, own_week: Week, what: str, names: set[str]
) -> None:
    """The silence starts now and matches this alert, or all alerts of its rule in the service."""
    path = f"/alerts/{own_week.seeded.open_alert}"
    answer = post_form(
        own_page, f"{path}/silence", path, **{"for": "8h", "what": what, "comment": "known", "by": "ann"}
    )
    [silence] = own_week.store.alerts.list_silences()

    assert answer.status_code == 303
    assert silence.ends_at - silence.starts_at == timedelta(hours=8)
    assert (silence.created_by, silence.comment, set(silence.matchers)) == ("ann", "known", names)
    alert = own_week.store.alerts.get(own_week.seeded.open_alert)
    assert alert is not None
    assert silence.covers(alert, NOW)
    assert "Silenced until" in own_page.get(path).text


def test_silencing_an_alert_matches_its_labels_literally(store: TrackingStore) -> None:
    """An asterisk in a route's name does not match other routes."""
    alert = write_alert(store, "docs-*[a]")
    with open_dashboard(store) as client:
        post_form(client, "/alerts/docs-%2A%5Ba%5D/silence", **{"for": "1h"})
    [silence] = store.alerts.list_silences()

    assert silence.covers(alert, NOW)
    assert not silence.covers(write_alert(store, "docs-xa"), NOW)


def test_the_end_of_a_silence_is_in_the_time_zone_of_the_visitor(own_page: TestClient, own_week: Week) -> None:
    """Browsers submit local times without a zone."""
    own_page.cookies.set("germane_zone", "Asia/Tokyo")
    post_form(own_page, "/alerts/silences", rule="dr*", until="2026-11-21T09:00", comment=TEXTS["script"])
    [silence] = own_week.store.alerts.list_silences()

    assert silence.ends_at.isoformat() == "2026-11-21T00:00:00+00:00"
    assert dict(silence.matchers) == {"rule": "dr*"}
    text = own_page.get("/alerts").text
    assert "&lt;script&gt;" in text
    assert TEXTS["script"] not in text


@each("until", ["", "yesterday", "2026-11-20T10:29:59+00:00", "9999-12-31T23:59", "2026-11-20T10:30Z"])
def test_a_silence_needs_an_end_and_a_matcher(page: TestClient, week: Week, until: str) -> None:
    """Past ends, very long silences and silences without matchers are rejected."""
    assert post_form(page, "/alerts/silences", rule="drop", until=until).status_code == 400
    assert post_form(page, "/alerts/silences", **{"for": "1h"}).status_code == 400
    assert week.store.alerts.list_silences() == []


@BOTH
def test_a_silence_can_start_in_the_future(own_page: TestClient, own_week: Week) -> None:
    """Scheduled silences are listed with their start; an end before the start is rejected."""
    own_page.cookies.set("germane_zone", "UTC")
    post_form(own_page, "/alerts/silences", rule="drop", since="2026-11-21T09:00", **{"for": "8h"})
    [silence] = own_week.store.alerts.list_silences()

    assert (silence.starts_at, silence.ends_at) == (NOW + timedelta(hours=22.5), NOW + timedelta(hours=30.5))
    assert "Sat 21 Nov 2026, 09:00 UTC" in own_page.get("/alerts").text
    refused = post_form(own_page, "/alerts/silences", rule="x", since="2026-11-22T09:00", until="2026-11-21T09:00")
    assert (refused.status_code, len(own_week.store.alerts.list_silences())) == (400, 1)


@each("since", ["tomorrow", "9999-01-01T00:00", "2026-13-01T00:00"])
def test_a_silence_with_an_invalid_start_is_rejected(page: TestClient, week: Week, since: str) -> None:
    """The silence does not start immediately, nor in a distant year."""
    assert post_form(page, "/alerts/silences", rule="x", since=since, **{"for": "1h"}).status_code == 400
    assert week.store.alerts.list_silences() == []


def test_only_the_newest_hundred_open_alerts_are_shown(store: TrackingStore) -> None:
    """The page also shows the number of older alerts."""
    for number in range(103):
        write_alert(store, f"a{number:03d}", starts_at=NOW - timedelta(minutes=number))
    with open_dashboard(store) as client:
        found = client.get("/alerts.json").json()
        text = client.get("/alerts").text

    assert [one["id"] for one in found["open"]] == [f"a{number:03d}" for number in range(100)]
    assert found["open_hidden"] == 3
    assert "and 3 older" in text
    assert len(text.encode()) < 200_000


def test_silencing_everything_needs_a_checkbox(own_page: TestClient, own_week: Week) -> None:
    """The silence can be ended on the page; ending it again changes nothing."""
    post_form(own_page, "/alerts/silences", **{"for": "1w", "all": "yes"})
    [silence] = own_week.store.alerts.list_silences()
    assert dict(silence.matchers) == {}
    assert "<b>all alerts</b>" in own_page.get("/alerts").text

    for _ in range(2):
        assert post_form(own_page, f"/alerts/silences/{silence.id}/end").status_code == 303
    assert own_week.store.alerts.list_silences() == []


@BOTH
def test_accepting_a_drop_as_the_baseline_needs_a_confirmation(own_page: TestClient, own_week: Week) -> None:
    """The confirmation lists the consequences; then a new baseline is learned and the alert is acknowledged."""
    path = f"/alerts/{own_week.seeded.open_alert}/accept"
    asked = own_page.get(path)
    assert asked.status_code == 200
    assert "Only large drops are detected until" in asked.text
    assert own_page.get(f"/alerts/{own_week.seeded.resolved_alert}/accept").status_code == 409

    assert post_form(own_page, path, path, by="ann").status_code == 303
    versions = [one for one in own_week.store.baselines.list_versions() if one.key.scorer == "answer_relevancy"]
    assert [(one.status, one.reason) for one in versions] == [("learning", "accepted")]
    alert = own_week.store.alerts.get(own_week.seeded.open_alert)
    assert alert is not None
    assert alert.acknowledged_by == "ann"


def test_a_drop_that_was_accepted_cannot_be_accepted_again(own_page: TestClient, own_week: Week) -> None:
    """The alert stays open until the next evaluation; its page and the second attempt state what happened."""
    path = f"/alerts/{own_week.seeded.open_alert}"
    post_form(own_page, f"{path}/ack", path, by="ann")
    after = post_form(own_page, f"{path}/accept", f"{path}/accept", by="ann").headers["location"]

    assert "Scores since the onset are the new baseline." in own_page.get(after).text
    assert f'href="{path}/accept"' not in own_page.get(path).text
    assert "a new baseline was accepted" in own_page.get(path).text
    assert own_page.get(f"{path}/accept").status_code == 409
    assert post_form(own_page, f"{path}/accept", path, by="bob").status_code == 409
    acknowledged = [
        one for one in own_week.store.alerts.list_events(own_week.seeded.open_alert) if one.type == "acknowledged"
    ]
    assert [one.detail["by"] for one in acknowledged] == ["ann"]


def test_only_drops_can_be_accepted_as_the_baseline(own_seeded: TrackingStore) -> None:
    """For other rules, the settings must be changed."""
    write_alert(own_seeded, "low")
    with open_dashboard(own_seeded) as client:
        answer = post_form(client, "/alerts/low/accept")

    assert answer.status_code == 409
    assert "has no baseline" in answer.text


ACTS = ("ack", "resolve", "silence", "accept")


def test_writes_on_alert_pages_need_a_csrf_token(page: TestClient, week: Week) -> None:
    """Forms from other sites are rejected."""
    before = week.store.alerts.get(week.seeded.open_alert)
    paths = [f"/alerts/{week.seeded.open_alert}/{act}" for act in ACTS]
    for path in (*paths, "/alerts/silences", "/alerts/silences/x/end"):
        assert page.post(path, data={"for": "1h", "rule": "drop"}).status_code == 403

    assert week.store.alerts.get(week.seeded.open_alert) == before
    assert week.store.alerts.list_silences() == []


def test_read_only_alert_pages_have_no_forms_and_reject_posts(seeded: TrackingStore, week: Week) -> None:
    """Visitors see the notifications but cannot change anything."""
    path = f"/alerts/{week.seeded.open_alert}"
    with open_dashboard(seeded, read_only=True) as client:
        pages = [client.get(one).text for one in ("/alerts", path)]
        answer = client.post(f"{path}/ack", data={"csrf": "x"})

    assert all('method="post"' not in text for text in pages)
    assert answer.status_code in {403, 405}
    alert = seeded.alerts.get(week.seeded.open_alert)
    assert alert is not None
    assert alert.acknowledged_at is None


def test_hostile_names_on_alert_pages_are_escaped(store: TrackingStore) -> None:
    """Routes, rules and comments can contain anything."""
    text = TEXTS["script"]
    alert = write_alert(
        store,
        "h" * 32,
        labels={"service": HOSTILE_SERVICE, "scorer": "answer_relevancy", "route": text},
        rule=text[:90],
        message=text,
        acknowledged_at=NOW,
        acknowledged_by=text,
        exchange_ids=("gone",),
    )
    store.alerts.add_silence(Silence(id="s", matchers={"route": text}, starts_at=NOW, ends_at=NOW + timedelta(days=1)))
    with open_dashboard(store) as client:
        pages = [client.get(path).text for path in ("/alerts", f"/alerts/{alert.id}", "/alerts/backtest")]

    for shown in pages:
        assert text not in shown
        assert "<img src=x" not in shown
    assert "1 more has been deleted" in pages[1]


def test_the_alert_page_explains_what_is_missing_if_no_alert_can_fire(store: TrackingStore) -> None:
    """An empty database has no alerts and no baseline, and the page names the next step."""
    with open_dashboard(store) as client:
        text = client.get("/alerts").text
        tried = client.get("/alerts/backtest").text

    assert "No open alerts." in text
    assert "No baseline yet." in text
    assert "No worker is running" in tried
    assert FINGERPRINTS["faithfulness"] not in text


def test_the_page_of_an_alert_shows_the_shares_of_answers_with_symptoms(page: TestClient, week: Week) -> None:
    text = page.get(f"/alerts/{week.seeded.open_alert}").text
    panel = text.partition('id="causes"')[2].partition("</section>")[0]
    rows = re.findall(r"<tr><td>(.*?)</tr>", panel, re.DOTALL)
    assert [row.partition("<")[0].strip() for row in rows] == [
        "Contexts of low relevance to the question",
        "Answers that the contexts support poorly",
        "Refusals",
    ]
    for row in rows:
        assert len(re.findall(r"[\d.]+% <span class=\"note\">[\d.]+% to [\d.]+%, n=\d+</span>", row)) == 2
