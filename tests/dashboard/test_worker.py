"""The worker page: workers, backlog, budget, failures, notifications and storage."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.hostile import TEXTS, write_hostile_exchanges
from tests.dashboard.page_client import open_dashboard, post_form
from tests.dashboard.seeding import FINGERPRINTS, NOW

from germane.cli.commands.report.data import load_report
from germane.dashboard import create_app
from germane.insights import recent_changes
from germane.insights.formatting import format_bytes, format_run_time
from germane.insights.worker import JobHistory, describe_limits, describe_sampling_outcomes, describe_sampling_settings
from germane.score import Score, UnscoredReason
from germane.settings import Budget, load_settings
from germane.storage import (
    JobRun,
    JobRuns,
    OutgoingRequest,
    RateLimit,
    RequestUsage,
    SamplingSummary,
    TrackingStore,
    WorkerHeartbeat,
)
from germane.storage.db.migrate import REVISIONS
from germane.storage.queue.health import SamplingReasonCount
from germane.testing import engine_of

LEASE = timedelta(minutes=1)
TEXT = re.compile(r"<[^>]+>")


def words(html: str) -> str:
    """Return the visible text of a page."""
    return " ".join(TEXT.sub(" ", html).split())


def runs(count: int, *failing: int) -> tuple[JobRun, ...]:
    """Return job runs two seconds apart, the last one now."""
    return tuple(
        JobRun(
            started_at=NOW - timedelta(seconds=2 * (count - 1 - number)),
            seconds=0.01 * (number + 1),
            problem="DatabaseUnreachable: away" if number in failing else None,
        )
        for number in range(count)
    )


def send_heartbeat(store: TrackingStore, **given: Any) -> None:
    """Write the heartbeat of a process."""
    own: dict[str, Any] = {
        "id": "worker-1", "host": "lighthouse", "pid": 4711, "service": "handbook", "version": "0.1.0",
        "scorers": FINGERPRINTS, "concurrency": 16,
    }  # fmt: skip
    store.workers.heartbeat(WorkerHeartbeat(**own | given), [], lease=LEASE)


def test_the_worker_page_without_a_worker_shows_the_command_to_start_one(store: TrackingStore) -> None:
    """An empty database is not an error: each panel says that it is empty, and the first one suggests a next step."""
    with open_dashboard(store) as client:
        text = words(client.get("/worker").text)

    assert "No worker. Answers are scored only while a worker is running. Run germane worker" in text
    assert "germane worker" in text
    for expected in (
        "No worker is running.",
        "No backlog.",
        "No failures in this window.",
        "No answers in this window.",
    ):
        assert expected in text


@pytest.mark.slow
def test_running_degraded_and_unresponsive_workers_are_distinguished(own_week: Week) -> None:
    """A worker is unresponsive after two leases without a heartbeat."""
    own_week.store.workers.heartbeat(
        WorkerHeartbeat(id="x", host="reef", pid=1, service="s", version="0"), [], lease=LEASE
    )
    late = TrackingStore(
        str(engine_of(own_week.store).url.render_as_string(hide_password=False)), clock=lambda: NOW + 3 * LEASE
    )
    send_heartbeat(late)
    send_heartbeat(late, id="worker-2", pid=2, problem="judge_rejected: the key is wrong")
    with open_dashboard(late) as client:
        text = client.get("/worker").text.split('id="jobs"')[0]
    late.close()

    states = re.findall(r"process (\d+).*?<span class=\"tag \w+\">([\w ]+)</span>", text, re.DOTALL)
    assert sorted(states) == [("1", "unresponsive"), ("2", "degraded"), ("4711", "running")]
    assert "the key is wrong" in text


def test_the_last_runs_of_each_job_are_shown(own_week: Week, own_page: TestClient) -> None:
    """Bars and a table show start, run time, next run and problem."""
    send_heartbeat(
        own_week.store,
        jobs=(JobRuns(name="watch", every=2.0, runs=runs(50, 20)), JobRuns(name="score", runs=runs(3))),
    )
    text = own_page.get("/worker").text

    assert 'aria-label="50 runs, 1 failed, longest 500 ms"' in text
    assert 'aria-label="3 runs, 0 failed, longest 30 ms"' in text
    assert text.count("DatabaseUnreachable: away") == 1
    assert "on demand" in text
    assert len(re.findall(r"<tr><td>watch</td>", text)) == 50


def test_the_worker_page_stays_small_with_many_processes(own_week: Week, own_page: TestClient) -> None:
    """Only one process's runs are shown, so the page is under 200 kB for any number of processes."""
    jobs = [JobRuns(name=f"job {number}", every=2.0, runs=runs(50)) for number in range(8)]
    for number in range(30):
        send_heartbeat(own_week.store, id=f"worker-{number}", pid=number, jobs=jobs)

    assert len(own_page.get("/worker").content) < 200_000


def test_jobs_of_other_processes_are_linked(own_week: Week, own_page: TestClient) -> None:
    """The most recently seen process is shown; an unknown one changes nothing."""
    send_heartbeat(own_week.store, jobs=(JobRuns(name="watch", runs=runs(2)),))
    send_heartbeat(own_week.store, id="worker-2", host="reef", pid=7, jobs=(JobRuns(name="sample", runs=runs(2)),))
    text = own_page.get("/worker?process=worker-2").text

    assert "of process 7 on reef" in text
    assert "process=worker-1#jobs" in text
    assert "of process 4711 on lighthouse" in own_page.get("/worker?process=nobody").text


def test_the_bar_of_a_job_run_is_proportional_to_the_square_root_of_its_duration() -> None:
    """The longest run and failed runs have full height."""
    job = JobRuns(name="watch", runs=(*runs(4), JobRun(started_at=NOW, seconds=0.0, problem="x")))
    bars = JobHistory(job=job).bars

    assert [bar.height for bar in bars] == [9.0, 12.7, 15.6, 18.0, 18]
    assert [bar.y + bar.height for bar in bars] == pytest.approx([18] * 5, abs=1e-9)
    assert [bar.failed for bar in bars] == [False] * 4 + [True]
    assert [bar.height for bar in JobHistory(job=JobRuns(name="x", runs=runs(0))).bars] == []


def test_the_number_of_seen_exchanges_is_the_sum_of_all_outcomes(page: TestClient) -> None:
    """Every row of the table adds up, for every window."""
    for window in ("24h", "7d"):
        text = page.get(f"/worker?window={window}").text.split('id="coverage"')[1].split("</table>")[0]
        rows = re.findall(r"<tr>(.*?)</tr>", text.split("</thead>")[1], re.DOTALL)
        assert len(rows) == 9
        for row in rows:
            cells = re.findall(r'class="end inline">([\d,]+)', row)
            seen, *parts = (int(cell.replace(",", "")) for cell in cells)
            assert len(parts) == 4
            assert seen == sum(parts)


def test_a_backlog_that_no_worker_can_score_is_marked(own_seeded: TrackingStore) -> None:
    """After a judge change, tasks for the old fingerprint wait until they expire."""
    send_heartbeat(own_seeded, scorers={**FINGERPRINTS, "faithfulness": "another"})
    with open_dashboard(own_seeded) as client:
        rows = client.get("/worker").text.split('id="queue"')[1].split("</section>")[0].split("<tr>")

    assert [FINGERPRINTS["faithfulness"] in row for row in rows] == [
        "no worker runs this scorer" in row for row in rows
    ]


def test_ages_on_the_worker_page_use_the_clock_of_the_database(store: TrackingStore) -> None:
    """A wrong clock on the dashboard's machine does not change them."""
    send_heartbeat(store)
    settings = load_settings(database="sqlite://")
    app = create_app(settings, store=store, now=lambda: NOW + timedelta(hours=5), trusted=True)
    with TestClient(app) as client:
        tiles = words(client.get("/worker").text.split('id="tiles"')[1].split("</dl>")[0])

    assert "running last seen now" in tiles


@BOTH
def test_the_backlog_is_shown_by_scorer_and_state(page: TestClient) -> None:
    """The table also shows the number of retries and the age of the oldest task."""
    text = words(page.get("/worker").text.split('id="queue"')[1].split("</section>")[0])

    assert "3 answers are waiting for a sampling decision." in text
    assert re.search(r"Answer relevancy 5d0c1f27a9be 9 2 0 0", text)


def test_requests_that_wait_to_be_forwarded_are_shown_by_target(store: TrackingStore) -> None:
    """With their number, their size, and the age of the oldest one. Without any, there is no panel."""
    with open_dashboard(store) as client:
        assert "Forwarding" not in client.get("/worker").text
        request = OutgoingRequest("traces", bytes(3_000))
        store.received.stage([], max_wait=1.0, requests=[request] * 2, target="http://there/<b>")
        text = words(client.get("/worker").text.split('id="forwarding"')[1].split("</section>")[0])

    assert "http://there/&lt;b&gt; 2 6.0 kB" in text


def test_failures_are_shown_with_reason_error_and_answer(page: TestClient) -> None:
    """Final failures and retries are listed separately."""
    text = page.get("/worker").text.split('id="failures"')[1].split("</section>")[0]

    assert "Error code: 429 - requests per minute of larch-judge are used up" in text
    assert text.count(">retrying<") == 3
    assert "the reply contains no question" in text
    assert re.search(r'href="/answers\?scorer=\w+&amp;state=failed&amp;reason=judge_timeout"', text)
    assert re.search(r'href="/a/[0-9a-f]+" data-drawer', text)


def test_every_page_counts_the_failures_of_the_last_hour(own_page: TestClient, own_week: Week) -> None:
    """The most common reason is named."""
    assert "no failures in the last hour" in words(own_page.get("/").text)
    queue = own_week.store.queue
    claims = queue.claim_tasks("w1", {"faithfulness": FINGERPRINTS["faithfulness"]}, limit=1, lease=LEASE)
    (task,) = (task for claim in claims for task in claim.tasks)
    failed = Score(scorer=task.scorer, fingerprint=task.fingerprint, reason=UnscoredReason.JUDGE_TIMEOUT)
    queue.complete_tasks("w1", [(task, failed)])

    assert "1 failure in the last hour: judge timeout" in words(own_page.get("/").text)


@BOTH
def test_failed_answers_can_be_rescored_from_the_worker_page(own_page: TestClient, own_week: Week) -> None:
    """A button queues all failures with one scorer and reason in the window, and the page shows their number."""
    before = own_week.store.answers.counts().failed_reasons["unparsable"]
    answer = post_form(own_page, "/worker/retry", "/worker", scorer="faithfulness", reason="unparsable", window="7d")

    assert answer.status_code == 303
    ready = int(re.findall(r"ready=(\d+)", answer.headers["location"])[0])
    assert ready > 0
    assert own_week.store.answers.counts().failed_reasons["unparsable"] == before - ready
    assert f"{ready:,} answers are queued for scoring" in own_page.get(answer.headers["location"]).text


def test_tasks_that_wait_for_a_retry_can_be_retried_immediately(own_page: TestClient, own_week: Week) -> None:
    """Once the judge is reachable again, they do not have to wait."""
    assert {one.postponed for one in own_week.store.backlog.load_outstanding().tasks} == {2}
    post_form(own_page, "/worker/retry", "/worker", scorer="faithfulness")

    assert {one.scorer: one.postponed for one in own_week.store.backlog.load_outstanding().tasks}["faithfulness"] == 0


def test_retrying_tasks_needs_a_known_scorer_and_reason(page: TestClient) -> None:
    """Unknown values are rejected with a suggestion."""
    assert post_form(page, "/worker/retry", "/worker", scorer="other").status_code == 409
    assert post_form(page, "/worker/retry", "/worker", scorer="faithfulness", reason="budget").status_code == 400


@BOTH
def test_undelivered_notifications_can_be_resent(own_page: TestClient, own_week: Week) -> None:
    """A request selects one by id or all of a channel; a request with neither is rejected."""
    [dead] = own_week.store.notifications.search(status="undelivered")
    text = own_page.get("/worker").text.split('id="notifications"')[1]
    assert "status 404" in text

    answer = post_form(own_page, "/worker/resend", "/worker", id=dead.notification.id)
    assert answer.headers["location"] == "/worker?resent=1#notifications"
    assert own_week.store.notifications.search(status="undelivered") == []
    assert (
        post_form(own_page, "/worker/resend", "/worker", channel="oncall").headers["location"]
        == "/worker?resent=0#notifications"
    )
    assert post_form(own_page, "/worker/resend", "/worker").status_code == 400


def test_judge_usage_is_shown_by_day(own_seeded: TrackingStore) -> None:
    """Each day is compared with its limit and has requests, tokens and cost; today is marked."""
    budget = Budget(requests_per_day=400, usd_per_day=2.0)
    settled = {date(2026, 11, 19): RequestUsage(100, 5_000.0, 1.5)}
    own_seeded.quota.reserve_budget(
        budget, [RequestUsage(200, 1_234.0, 0.25)], settled=settled, limits=[RateLimit("requests", 60)], amounts=[[1]]
    )
    with open_dashboard(own_seeded, budget=budget.model_dump(), requests_per_minute=60) as client:
        text = words(client.get("/worker").text)

    assert "Fri 20 Nov (today) 50% 200 1,234 $0.2500" in text
    assert "Thu 19 Nov 75% 100 5,000 $1.50" in text
    assert "This process's budget: 400 requests per day, $2.00 per day." in text.replace("&#39;", "'")
    assert "Requests: the last request waited" in text
    assert "This process's limits: 60 requests per minute" in text


def test_anchors_are_shown_with_the_judge_usage(own_seeded: TrackingStore) -> None:
    """They are requests that no answer of the window explains."""
    assert own_seeded.anchors.refill("answer_relevancy", 12, text_lifetime=timedelta(days=365)).active == 12
    own_seeded.anchors.start_round("answer_relevancy", "daily")
    with open_dashboard(own_seeded) as client:
        text = words(client.get("/worker").text)

    assert (
        "Answer relevancy scores 12 answers again every day to watch its judge: 0 with a baseline, last round" in text
    )
    assert ", 12 waiting" in text


def test_rounds_and_a_reported_change_of_the_judge_are_shown(own_seeded: TrackingStore) -> None:
    """Differences are from the baselines. The overview and the report also state the shift with its interval."""

    def score_anchors(fingerprint: str, judge: str, shift: float, rounds: int = 1) -> None:
        for number in range(rounds):
            own_seeded.anchors.start_round("answer_relevancy", "daily")
            while (pending := own_seeded.anchors.next_pending("answer_relevancy")) is not None:
                value = 0.5 + shift + random.Random(f"{number}{pending.exchange.id}").uniform(-0.05, 0.05)
                scored = Score(scorer="answer_relevancy", fingerprint=fingerprint, value=value, judge=judge)
                own_seeded.anchors.save_score("answer_relevancy", pending, scored)

    own_seeded.anchors.refill("answer_relevancy", 40, text_lifetime=timedelta(days=365))
    score_anchors("f1", "larch-2", 0.0, rounds=5)
    score_anchors("f1", "larch-2", 0.1)
    with open_dashboard(own_seeded) as client:
        text = words(client.get("/worker").text)
        assert re.search(r"\+0\.1\d 95% interval 0\.[01]\d\u20130\.1\d 40", text)
        score_anchors("f2", "orca-1", -0.1)
        text, overview = (words(client.get(path).text) for path in ("/worker", "/"))

    changed = re.compile(
        r"The judge of answer relevancy changed on 2026-11-20 from larch-2 to orca-1\. "
        r"The new judge scores 0\.(09|1\d) lower \(0\.(0\d|1\d) to 0\.1\d, 40 anchors\)\."
    )
    assert changed.search(text)
    assert changed.search(overview)
    report = load_report(own_seeded, NOW - timedelta(days=1), NOW, service=None, route=None)
    assert changed.fullmatch(report.notes[0])
    assert list(recent_changes(own_seeded, NOW + timedelta(days=15))) == []


def test_the_sampling_panel_names_the_source_of_its_counts(seeded: TrackingStore) -> None:
    """The panel shows this process's settings, and the sampling decisions for the newest answers."""
    with open_dashboard(seeded, sample_rate=0.25) as client:
        text = words(client.get("/worker").text)

    assert "25% sampled (sample_rate = 0.25). From the settings of this process" in text
    assert re.search(r"\d+ sampled \(with probability 0\.8", text)


def test_sampling_rules_are_described() -> None:
    """The rules are a rate of 1, a lower rate, and a budget with all limits; decisions have probabilities."""
    assert describe_sampling_settings(load_settings(database="sqlite://")) == "All sampled (sample_rate = 1)."
    budget = Budget(requests_per_hour=90, tokens_per_day=1_000_000, usd_per_day=2.5)
    assert list(describe_limits(budget)) == ["90 requests per hour", "1,000,000 tokens per day", "$2.50 per day"]
    description = describe_sampling_settings(
        load_settings(database="sqlite://", budget=budget.model_dump(), always_score=[{"status": ["error"]}])
    )
    assert description.startswith("Selected by expected information, within the budget: 90 requests per hour,")
    assert description.endswith("Answers that match always_score are scored regardless.")
    some = [
        SamplingReasonCount(reason="suspicion", n=3, min_probability=0.05, max_probability=0.5),
        SamplingReasonCount(reason="new_one", n=2, min_probability=0.5, max_probability=0.5),
        SamplingReasonCount(reason="", n=1, min_probability=None, max_probability=None),
    ]
    assert describe_sampling_outcomes(SamplingSummary(n=6, since=NOW, reasons=some, without_text=0, erased=0)) == [
        "3 selected for a low proxy score (with probability 0.05 to 0.5)",
        "2 new one (with probability 0.5)",
        "1 not decided yet",
    ]


def test_the_storage_panel_shows_retention_and_redaction(seeded: TrackingStore) -> None:
    """The panel also shows size, revision, capture, erasure, and redactions in the newest answers."""
    retention = {"text_days": 7, "score_days": 90, "max_size": "5GB"}
    with open_dashboard(seeded, retention=retention, capture="store", erase_after_scoring=True) as client:
        text = words(client.get("/worker").text.split('id="kept"')[1])

    assert re.search(r"Size [\d.]+ [kM]B of at most 5\.0 GB", text)
    assert f"revision {REVISIONS[-1]}" in text
    assert "erased after scoring" in text
    assert "deleted after 90 days" in text
    assert "text is stored in the database, not on spans" in text
    assert re.search(r"\d+ of the newest 1,000 answers were captured without text; the text of 0 has been erased", text)
    assert "Redaction no redactions found in the newest 20 answers" in text


@each("path", ["retry", "resend"])
def test_actions_on_the_worker_page_need_a_csrf_token(page: TestClient, week: Week, path: str) -> None:
    """Forms from other sites are rejected."""
    before = week.store.answers.counts(), len(week.store.notifications.search(status="undelivered"))
    answer = page.post(f"/worker/{path}", data={"scorer": "faithfulness", "reason": "unparsable", "channel": "oncall"})

    assert answer.status_code == 403
    assert (week.store.answers.counts(), len(week.store.notifications.search(status="undelivered"))) == before


def test_the_read_only_worker_page_has_no_buttons_and_rejects_posts(seeded: TrackingStore) -> None:
    """Visitors see failures but cannot change anything."""
    with open_dashboard(seeded, read_only=True) as client:
        text = client.get("/worker").text
        answer = client.post("/worker/retry", data={"csrf": "x", "scorer": "faithfulness"})

    assert 'method="post"' not in text
    assert answer.status_code in {403, 405}


def test_hostile_names_on_the_worker_page_are_escaped(own_week: Week, own_page: TestClient) -> None:
    """Routes, hosts, problems and errors can contain anything; a forged result message is not shown."""
    write_hostile_exchanges(own_week.store)
    text = TEXTS["script"]
    send_heartbeat(own_week.store, host=text, service=text, problem=text, jobs=(JobRuns(name=text, runs=runs(1)),))
    shown = own_page.get("/worker?window=7d&ready=<b>1&resent=99999999").text

    assert text not in shown
    assert "<img src=x" not in shown
    assert "queued for scoring" not in shown
    assert len(shown.encode()) < 200_000


@each(
    ("form", "value", "expected"),
    [
        (format_bytes, 0, "0 B"), (format_bytes, 999, "999 B"), (format_bytes, 8_812_000, "8.8 MB"),
        (format_bytes, 123_456, "123 kB"),
        (format_bytes, 5e9, "5.0 GB"), (format_bytes, 7.25e12, "7.2 TB"), (format_run_time, 0.0, "0 ms"),
        (format_run_time, 0.0124, "12 ms"),
        (format_run_time, 0.9996, "1.0 s"), (format_run_time, 3.44, "3.4 s"), (format_run_time, 3_725.0, "1:02:05"),
    ],
)  # fmt: skip
def test_sizes_and_durations_are_shown_in_readable_units(
    form: Callable[[float], str], value: float, expected: str
) -> None:
    """Values use the largest suitable unit."""
    assert form(value) == expected
