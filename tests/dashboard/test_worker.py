"""The page of workers and the budget: who scores, what waits, what it cost, what failed, and what is kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.dashboard.conftest import Week
from tests.dashboard.hostile import TEXTS, hostile
from tests.dashboard.seeding import FINGERPRINTS, NOW
from tests.dashboard.visits import post, visiting

from germane.dashboard import create_app
from germane.insights.formatting import format_bytes, format_run_time
from germane.insights.sampling import describe_limits, describe_sampling_outcomes, describe_sampling_settings
from germane.insights.worker import JobHistory
from germane.settings import Budget, load_settings
from germane.storage import (
    JobRun,
    JobRuns,
    RateLimit,
    RequestUsage,
    SamplingReasonCount,
    SamplingSummary,
    TrackingStore,
    WorkerHeartbeat,
)

LEASE = timedelta(minutes=1)
TEXT = re.compile(r"<[^>]+>")


def words(html: str) -> str:
    """Return what a page says, without its tags."""
    return " ".join(TEXT.sub(" ", html).split())


def runs(count: int, *failing: int) -> tuple[JobRun, ...]:
    """Return runs, two seconds apart, the last one now."""
    return tuple(
        JobRun(
            started_at=NOW - timedelta(seconds=2 * (count - 1 - number)),
            seconds=0.01 * (number + 1),
            problem="DatabaseUnreachable: away" if number in failing else None,
        )
        for number in range(count)
    )


def beat(store: TrackingStore, **given: Any) -> None:
    """Have a process tell of itself."""
    own: dict[str, Any] = {
        "id": "worker-1", "host": "lighthouse", "pid": 4711, "service": "handbook", "version": "0.1.0",
        "scorers": FINGERPRINTS, "concurrency": 16,
    }  # fmt: skip
    store.workers.heartbeat(WorkerHeartbeat(**own | given), [], lease=LEASE)


def test_without_a_worker_the_page_says_what_to_start(store: TrackingStore) -> None:
    """An empty database is no error: each part says that there is nothing, and the first what comes next."""
    with visiting(store) as client:
        text = words(client.get("/worker").text)

    assert "No worker. Answers are scored only while a worker runs: run germane worker" in text
    assert "germane worker" in text
    for said in ("No worker is running.", "No backlog.", "No failures in this window.", "No answers in this window."):
        assert said in text


def test_processes_that_fell_silent_are_told_apart(week: Week) -> None:
    """One that runs, one whose judge is left alone, and one that was not seen for two leases."""
    week.store.workers.heartbeat(WorkerHeartbeat(id="x", host="reef", pid=1, service="s", version="0"), [], lease=LEASE)
    late = TrackingStore(
        str(week.store._database.url.render_as_string(hide_password=False)), clock=lambda: NOW + 3 * LEASE
    )
    beat(late)
    beat(late, id="worker-2", pid=2, problem="judge_rejected: the key is wrong")
    with visiting(late) as client:
        text = client.get("/worker").text.split('id="jobs"')[0]
    late.close()

    states = re.findall(r"process (\d+).*?<span class=\"tag \w+\">([\w ]+)</span>", text, re.DOTALL)
    assert sorted(states) == [("1", "unresponsive"), ("2", "degraded"), ("4711", "running")]
    assert "the key is wrong" in text


def test_the_last_runs_of_each_job_are_shown(week: Week, page: TestClient) -> None:
    """When it ran, what it format_run_time, when it is due again, what went wrong; as bars and as a table."""
    beat(
        week.store,
        jobs=(JobRuns(name="watch", every=2.0, runs=runs(50, 20)), JobRuns(name="score", runs=runs(3))),
    )
    text = page.get("/worker").text

    assert 'aria-label="50 runs, 1 failed, longest 500 ms"' in text
    assert 'aria-label="3 runs, 0 failed, longest 30 ms"' in text
    assert text.count("DatabaseUnreachable: away") == 1
    assert "on demand" in text
    assert len(re.findall(r"<tr><td>watch</td>", text)) == 50


def test_the_page_stays_light_with_all_jobs_of_many_processes(week: Week, page: TestClient) -> None:
    """Only one process's runs stand in it: under 200 kB, whatever the number of processes."""
    jobs = [JobRuns(name=f"job {number}", every=2.0, runs=runs(50)) for number in range(8)]
    for number in range(30):
        beat(week.store, id=f"worker-{number}", pid=number, jobs=jobs)

    assert len(page.get("/worker").content) < 200_000


def test_the_jobs_of_another_process_are_one_link_away(week: Week, page: TestClient) -> None:
    """The one seen last is shown; an unknown one changes nothing."""
    beat(week.store, jobs=(JobRuns(name="watch", runs=runs(2)),))
    beat(week.store, id="worker-2", host="reef", pid=7, jobs=(JobRuns(name="sample", runs=runs(2)),))
    text = page.get("/worker?process=worker-2").text

    assert "of process 7 on reef" in text
    assert "process=worker-1#jobs" in text
    assert "of process 4711 on lighthouse" in page.get("/worker?process=nobody").text


def test_a_bar_is_as_high_as_the_root_of_what_its_run_took() -> None:
    """The longest fills the strip, and so does one that failed."""
    job = JobRuns(name="watch", runs=(*runs(4), JobRun(started_at=NOW, seconds=0.0, problem="x")))
    bars = JobHistory(job=job).bars

    assert [bar.height for bar in bars] == [9.0, 12.7, 15.6, 18.0, 18]
    assert [bar.y + bar.height for bar in bars] == pytest.approx([18] * 5, abs=1e-9)
    assert [bar.failed for bar in bars] == [False] * 4 + [True]
    assert [bar.height for bar in JobHistory(job=JobRuns(name="x", runs=runs(0))).bars] == []


def test_seen_is_always_the_sum_of_what_became_of_it(page: TestClient) -> None:
    """In every row of the table, whatever the window."""
    for window in ("24h", "7d"):
        text = page.get(f"/worker?window={window}").text.split('id="coverage"')[1].split("</table>")[0]
        rows = re.findall(r"<tr>(.*?)</tr>", text.split("</thead>")[1], re.DOTALL)
        assert len(rows) == 9
        for row in rows:
            cells = re.findall(r'class="end inline">([\d,]+)', row)
            seen, *parts = (int(cell.replace(",", "")) for cell in cells)
            assert len(parts) == 4
            assert seen == sum(parts)


def test_what_nobody_that_lives_can_score_is_called_so(seeded: TrackingStore) -> None:
    """After a change of judge the tasks of the old one wait, until they are given up: that is said where they wait."""
    beat(seeded, scorers={**FINGERPRINTS, "faithfulness": "another"})
    with visiting(seeded) as client:
        rows = client.get("/worker").text.split('id="queue"')[1].split("</section>")[0].split("<tr>")

    assert [FINGERPRINTS["faithfulness"] in row for row in rows] == ["no running worker has it" in row for row in rows]


def test_ages_are_by_the_clock_of_the_database(store: TrackingStore) -> None:
    """A visitor is told how long ago a process was seen, however wrong the clock of the machine with the pages is."""
    beat(store)
    settings = load_settings(database="sqlite://")
    app = create_app(settings, store=store, now=lambda: NOW + timedelta(hours=5), trusted=True)
    with TestClient(app) as client:
        tiles = words(client.get("/worker").text.split('id="tiles"')[1].split("</dl>")[0])

    assert "running seen now" in tiles


def test_what_waits_is_shown_by_scorer_and_state(page: TestClient) -> None:
    """With how many are put off, and the age of the oldest."""
    text = words(page.get("/worker").text.split('id="queue"')[1].split("</section>")[0])

    assert "3 answers are waiting for a sampling decision." in text
    assert re.search(r"Answer relevancy 5d0c1f27a9be 9 2 0 0", text)


def test_failures_carry_their_reason_their_text_and_their_answer(page: TestClient) -> None:
    """What failed for good, and what is tried again, are told apart."""
    text = page.get("/worker").text.split('id="failures"')[1].split("</section>")[0]

    assert "Error code: 429 - requests per minute of larch-judge are used up" in text
    assert text.count(">retrying<") == 3
    assert "the reply holds no question" in text
    assert re.search(r'href="/answers\?scorer=\w+&amp;state=failed&amp;reason=judge_timeout"', text)
    assert re.search(r'href="/a/[0-9a-f]+" data-drawer', text)


def test_failures_are_scored_again_by_a_button(page: TestClient, week: Week) -> None:
    """All of one scorer and reason within the window; the page says how many."""
    before = week.store.answers.counts().failed_reasons["unparsable"]
    answer = post(page, "/worker/retry", "/worker", scorer="faithfulness", reason="unparsable", window="7d")

    assert answer.status_code == 303
    ready = int(re.findall(r"ready=(\d+)", answer.headers["location"])[0])
    assert ready > 0
    assert week.store.answers.counts().failed_reasons["unparsable"] == before - ready
    assert f"{ready:,} answers are queued for scoring" in page.get(answer.headers["location"]).text


def test_what_was_put_off_is_tried_at_once_by_a_button(page: TestClient, week: Week) -> None:
    """It waits no longer for a judge that is back."""
    assert {one.postponed for one in week.store.queue.load_outstanding().tasks} == {2}
    post(page, "/worker/retry", "/worker", scorer="faithfulness")

    assert {one.scorer: one.postponed for one in week.store.queue.load_outstanding().tasks}["faithfulness"] == 0


def test_what_nobody_would_score_is_not_tried_again(page: TestClient) -> None:
    """A scorer that no process has, and a reason that there is not, are refused with what to do."""
    assert post(page, "/worker/retry", "/worker", scorer="other").status_code == 409
    assert post(page, "/worker/retry", "/worker", scorer="faithfulness", reason="budget").status_code == 400


def test_dead_notifications_are_sent_again_by_a_button(page: TestClient, week: Week) -> None:
    """One by its id, or all of a channel; nothing named is refused."""
    [dead] = week.store.notifications.search(status="undelivered")
    text = page.get("/worker").text.split('id="notifications"')[1]
    assert "status 404" in text

    answer = post(page, "/worker/resend", "/worker", id=dead.notification.id)
    assert answer.headers["location"] == "/worker?resent=1#notifications"
    assert week.store.notifications.search(status="undelivered") == []
    assert (
        post(page, "/worker/resend", "/worker", channel="oncall").headers["location"]
        == "/worker?resent=0#notifications"
    )
    assert post(page, "/worker/resend", "/worker").status_code == 400


def test_the_days_of_the_budget_are_bars_with_numbers(seeded: TrackingStore) -> None:
    """Each beside its limit, with requests, tokens and cost; today is named."""
    budget = Budget(requests_per_day=400, usd_per_day=2.0)
    settled = {date(2026, 11, 19): RequestUsage(100, 5_000.0, 1.5)}
    seeded.quota.reserve_budget(
        budget, [RequestUsage(200, 1_234.0, 0.25)], settled=settled, limits=[RateLimit("requests", 60)], amounts=[[1]]
    )
    with visiting(seeded, budget=budget.model_dump(), requests_per_minute=60) as client:
        text = words(client.get("/worker").text)

    assert "Fri 20 Nov (today) 50 % 200 1,234 $0.2500" in text
    assert "Thu 19 Nov 75 % 100 5,000 $1.50" in text
    assert "Budget of this process: 400 requests per day, $2.00 per day." in text.replace("&#39;", "'")
    assert "Requests: the last request waited" in text
    assert "Set here: 60 requests per minute" in text


def test_the_rule_of_sampling_says_whose_it_is(seeded: TrackingStore) -> None:
    """The settings of this process beside what was done with the newest answers."""
    with visiting(seeded, sample_rate=0.25) as client:
        text = words(client.get("/worker").text)

    assert "25 % sampled (sample_rate = 0.25). From the settings of this process" in text
    assert re.search(r"\d+ sampled \(with probability 0\.8", text)


def test_sampling_is_told_in_words() -> None:
    """A rate of one, a rate, and a budget with all its describe_limits; and what was done, with its probabilities."""
    assert describe_sampling_settings(load_settings(database="sqlite://")) == "All sampled (sample_rate = 1)."
    budget = Budget(requests_per_hour=90, tokens_per_day=1_000_000, usd_per_day=2.5)
    assert list(describe_limits(budget)) == ["90 requests per hour", "1,000,000 tokens per day", "$2.50 per day"]
    told = describe_sampling_settings(
        load_settings(database="sqlite://", budget=budget.model_dump(), always_score=[{"status": ["error"]}])
    )
    assert told.startswith("Picked by expected information, within the budget: 90 requests per hour,")
    assert told.endswith("Answers that match always_score are scored regardless.")
    some = [
        SamplingReasonCount(reason="suspicion", n=3, min_probability=0.05, max_probability=0.5),
        SamplingReasonCount(reason="new_one", n=2, min_probability=0.5, max_probability=0.5),
        SamplingReasonCount(reason="", n=1, min_probability=None, max_probability=None),
    ]
    assert describe_sampling_outcomes(SamplingSummary(n=6, since=NOW, reasons=some, without_text=0, erased=0)) == [
        "3 picked for a low local score (with probability 0.05 to 0.5)",
        "2 new one (with probability 0.5)",
        "1 not decided yet",
    ]


def test_what_is_kept_and_what_is_hidden_is_told(seeded: TrackingStore) -> None:
    """Size, revision, retention, capture, erasing, and what redaction left in the newest answers."""
    retention = {"text_days": 7, "score_days": 90, "max_size": "5GB"}
    with visiting(seeded, retention=retention, capture="store", erase_after_scoring=True) as client:
        text = words(client.get("/worker").text.split('id="kept"')[1])

    assert re.search(r"Size [\d.]+ [kM]B of at most 5\.0 GB", text)
    assert "revision 0007" in text
    assert "erased after scoring" in text
    assert "deleted after 90 days" in text
    assert "text is stored in the database, not on spans" in text
    assert re.search(r"\d+ of the newest 1,000 answers were captured without text, 0 were erased", text)
    assert "Redaction no redactions found in the newest 20 answers" in text


@pytest.mark.parametrize("path", ["retry", "resend"])
def test_nothing_is_done_without_the_seal_of_a_page(page: TestClient, week: Week, path: str) -> None:
    """Another site's form is refused."""
    before = week.store.answers.counts(), len(week.store.notifications.search(status="undelivered"))
    answer = page.post(f"/worker/{path}", data={"scorer": "faithfulness", "reason": "unparsable", "channel": "oncall"})

    assert answer.status_code == 403
    assert (week.store.answers.counts(), len(week.store.notifications.search(status="undelivered"))) == before


def test_read_only_pages_have_no_buttons_and_refuse_them(seeded: TrackingStore) -> None:
    """Who may only look sees what failed, and changes nothing."""
    with visiting(seeded, read_only=True) as client:
        text = client.get("/worker").text
        answer = client.post("/worker/retry", data={"csrf": "x", "scorer": "faithfulness"})

    assert 'method="post"' not in text
    assert answer.status_code in {403, 405}


def test_hostile_names_are_shown_and_do_nothing(week: Week, page: TestClient) -> None:
    """Routes, hosts, problems and errors may hold anything; an address that lies about what was done says nothing."""
    hostile(week.store)
    text = TEXTS["script"]
    beat(week.store, host=text, service=text, problem=text, jobs=(JobRuns(name=text, runs=runs(1)),))
    shown = page.get("/worker?window=7d&ready=<b>1&resent=99999999").text

    assert text not in shown
    assert "<img src=x" not in shown
    assert "queued for scoring" not in shown
    assert len(shown.encode()) < 200_000


@pytest.mark.parametrize(
    ("form", "value", "said"),
    [
        (format_bytes, 0, "0 B"), (format_bytes, 999, "999 B"), (format_bytes, 8_812_000, "8.8 MB"), (format_bytes, 123_456, "123 kB"),
        (format_bytes, 5e9, "5.0 GB"), (format_bytes, 7.25e12, "7.2 TB"), (format_run_time, 0.0, "0 ms"), (format_run_time, 0.0124, "12 ms"),
        (format_run_time, 0.9996, "1.0 s"), (format_run_time, 3.44, "3.4 s"), (format_run_time, 3_725.0, "1:02:05"),
    ],
)  # fmt: skip
def test_sizes_and_times_are_short(form: Callable[[float], str], value: float, said: str) -> None:
    """In the unit that a person would choose."""
    assert form(value) == said
