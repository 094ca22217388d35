"""Tests of `germane score`."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each

from germane.testing import FakeJudge, Fault

Call = Callable[..., Any]
HOSTILE = "\x1b[2J\u202e<script>"


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeJudge]:
    """A configured judge that generates the questions of the rows correctly."""
    with FakeJudge(questions=question_of) as running:
        for name, value in running.settings().items():
            monkeypatch.setenv(f"GERMANE_{name.upper()}", value)
        yield running


def question_of(answer: str) -> list[str]:
    """Return the question that a row's answer answers."""
    return [answer.replace("By card ", "How do I pay ").replace(".", "?")]


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    """Return rows that all score 1."""
    return [{"question": f"How do I pay {n}?", "answer": f"By card {n}.", **more} for n in range(count)]


def written(found: list[dict[str, Any]], name: str = "rows.jsonl") -> str:
    """Write rows and return the file's name."""
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    return name


def test_score_prints_the_results_for_a_file(call: Call, judge: FakeJudge) -> None:
    """The output shows n, the interval, coverage, the worst rows and usage."""
    bad = {"question": "When do you open?", "answer": f"By card {HOSTILE} 7."}
    ended = call("score", written([*rows(20), bad, {"question": "How?", "answer": ""}]))

    assert ended.code == 0
    assert ended.out.splitlines()[1].split()[:2] == ["answer_relevancy", "21"]
    assert "21 of 22" in ended.out
    assert "answer_relevancy: 1 missing_input" in ended.out
    assert "rows.jsonl, line 21" in ended.out
    assert "question  When do you open?" in ended.out
    assert "22 rows in " in ended.out
    assert " tokens" in ended.out


def test_score_json_has_no_share_of_refusals_if_no_scorer_detects_them(call: Call, judge: FakeJudge) -> None:
    """The share is null instead of 0."""
    file = written(rows(20))

    shares = {
        scorer: call("score", file, "--scorer", scorer, "--json").content["summary"][0]["noncommittal_share"]
        for scorer in ("question_answer_similarity", "answer_relevancy")
    }

    assert shares == {"question_answer_similarity": None, "answer_relevancy": 0.0}


def test_texts_of_scored_rows_are_sanitized(call: Call, judge: FakeJudge) -> None:
    """This applies to the list of worst rows and to errors."""
    shown = call("score", written([{"question": HOSTILE, "answer": "By card 1.", "id": HOSTILE}]))
    wrong = call("score", written([{HOSTILE: 1}]))

    assert all(character.isprintable() or character == "\n" for character in shown.out + wrong.err)
    assert wrong.code == 1


@pytest.mark.parametrize(
    ("count", "options", "code"),
    [
        (20, ["--fail-under", "0.9"], 0),
        (20, ["--fail-under", "1.01"], 3),
        (19, ["--fail-under", "0.9"], 5),
        (19, [], 0),
        (20, ["--min-coverage", "0.9"], 0),
        (0, ["--fail-under", "0.9"], 5),
        (0, [], 5),
    ],
)
def test_the_exit_code_of_score_reflects_the_thresholds(
    call: Call, judge: FakeJudge, count: int, options: list[str], code: int
) -> None:
    """The exit code is 0 for success, 3 for a violated threshold, and 5 for too little data."""
    assert call("score", written(rows(count)), *options).code == code


def test_an_unreachable_judge_is_reported_as_not_enough_data(call: Call, judge: FakeJudge) -> None:
    """An unreachable judge violates a coverage threshold, but never a mean threshold."""
    judge.outage = Fault("refusal")
    file = written(rows(20))

    assert call("score", file).code == 5
    assert call("score", file, "--fail-under", "0.5").code == 5
    ended = call("score", file, "--fail-under", "0.5", "--min-coverage", "0.9")
    assert ended.code == 3
    assert "20 judge_refused, mostly: " in ended.out


def test_identical_failures_are_grouped_in_the_output_of_score(call: Call, judge: FakeJudge) -> None:
    """Such failures share a message and a count, in the list of worst rows and in reports."""
    judge.outage = Fault("status", status=401, message="no such key")
    file = written(rows(90))

    shown = call("score", file, "--scorer", "direct_relevancy").out
    report = call("score", file, "--scorer", "direct_relevancy", "--report", "markdown").out

    assert "Worst 90 of 90 low or failed scores" in shown
    assert shown.partition("Worst")[2].count("reason    not sent: the judge rejected 20 requests in a row") == 1
    assert "more rows" in shown
    assert report.partition("## Worst 90 of 90")[2].count("not sent") == 1


def test_score_json_is_a_single_object(call: Call, judge: FakeJudge) -> None:
    """The object contains the summary, worst rows, usage and the result of the check."""
    file = written([*rows(20), {"question": "When do you open?", "answer": "By card 7."}])
    content = call("score", file, "--json", "--fail-under", "0.5").content

    (summary,) = content["summary"]
    assert (content["rows"], summary["n"], summary["coverage"], summary["has_min_samples"]) == (21, 21, 1.0, True)
    assert content["check"]["passed"] is True
    assert content["check"]["findings"][0]["message"].startswith("answer_relevancy: mean ")
    assert content["usage"]["input_tokens"] > 0
    assert "check" not in call("score", file, "--json").content


def test_scorers_columns_and_limit_can_be_specified(call: Call, judge: FakeJudge) -> None:
    """The options override the settings."""
    found = [{"q": row["question"], "a": row["answer"]} for row in rows(5)]
    options = ["--scorer", "question_answer_similarity", "--scorer", "answer_relevancy", "--limit", "2"]

    content = call("score", written(found), "--columns", "question=q, answer=a", *options, "--json").content

    assert [summary["scorer"] for summary in content["summary"]] == ["question_answer_similarity", "answer_relevancy"]
    assert content["rows"] == 2


def test_judge_and_embedder_can_be_specified(call: Call, judge: FakeJudge) -> None:
    """The options override the settings."""
    call("score", written(rows(1)), "--judge", "other", "--embedder", "other-embedder")

    assert {request.body["model"] for request in judge.chat_requests} == {"other"}
    assert {request.body["model"] for request in judge.embedding_requests} == {"other-embedder"}


def test_the_score_cache_avoids_repeated_requests(call: Call, judge: FakeJudge) -> None:
    """A second run sends no requests."""
    file = written(rows(5))
    for _ in range(2):
        assert call("score", file, "--cache", "scores.db").code == 0

    assert len(judge.chat_requests) == 2 * 5


@pytest.mark.parametrize(
    ("kind", "name", "start"),
    [("markdown", "r.md", "# Evaluation"), ("json", "r.json", '{"schema_version": 1'), ("html", "r.html", "<!doctype")],
)
def test_the_score_report_is_printed_or_written_to_a_file(
    call: Call, judge: FakeJudge, kind: str, name: str, start: str
) -> None:
    """The file's extension determines the format. The summary then goes to standard output."""
    file = written(rows(2))

    printed = call("score", file, "--report", kind)
    summary = call("score", file, "--output", name)

    assert printed.out.startswith(start)
    assert "2 of 2" in summary.out
    assert Path(name).read_text(encoding="utf-8").startswith(start)


@each(
    ("options", "message"),
    [
        (["--output", "report.pdf"], "cannot determine the format of --output report.pdf"),
        (["--output", "absent/report.md"], "the directory absent does not exist"),
        (["--output", "rows.jsonl", "--report", "json"], "would overwrite an input file"),
        (["--output", "c.json", "--cache", "c.json"], "would overwrite an input file"),
        (["--json", "--report", "html"], "add --output FILE"),
        (["--columns", "question"], "is not a list of NAME=COLUMN pairs"),
        (["--min-coverage", "90"], "is not in the range 0<=x<=1"),
        (["--limit", "0"], "is not in the range"),
    ],
)
def test_a_usage_error_of_score_exits_with_2(call: Call, judge: FakeJudge, options: list[str], message: str) -> None:
    """The error is reported before any work is done."""
    ended = call("score", written(rows(1)), *options)

    assert (ended.code, ended.out, judge.requests) == (2, "", [])
    assert message in " ".join(ended.err.split())


def test_score_exits_with_2_if_the_file_is_missing(call: Call, judge: FakeJudge) -> None:
    """The error message comes from click."""
    assert call("score", "absent.jsonl").code == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "rows.jsonl, line 2 has no column question or user_input"),
        (["--limit", "1", "--scorer", "relevance"], "unknown scorer 'relevance'"),
        (["--limit", "1", "--columns", "qestion=q"], "unknown columns qestion"),
        (["--limit", "1", "--fail-under", "nan"], "min_mean must be a finite number, not nan"),
        (["--limit", "1", "--cache", "rows.jsonl"], "the cache rows.jsonl is not a score cache"),
    ],
)
def test_a_file_or_option_that_cannot_be_scored_is_an_error(
    call: Call, judge: FakeJudge, options: list[str], message: str
) -> None:
    """One line names the location and the fix. No request is sent."""
    ended = call("score", written([*rows(1), {"answer": "x"}, *rows(50)]), *options)

    assert (ended.code, ended.out, judge.requests) == (2 if "--scorer" in options else 1, "", [])
    assert ended.err.startswith("germane: ")
    assert message in ended.err


def all_of(leader: int) -> str:
    """Return the output to a terminal until its other end is closed. Slower runs write more."""
    output = b""
    with contextlib.suppress(OSError), open(leader, "rb", buffering=0) as terminal:
        while found := terminal.read(4096):
            output += found
    return output.decode()


@pytest.mark.slow
def test_progress_is_shown_only_on_a_terminal(bare: Path, judge: FakeJudge, environment: dict[str, str]) -> None:
    """The progress goes to standard error."""
    leader, follower = pty.openpty()
    settings = {f"GERMANE_{name.upper()}": value for name, value in judge.settings().items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "germane", "score", written(rows(3))],
        env=environment | settings | {"TERM": "xterm-256color", "COLUMNS": "120"},
        stdout=subprocess.PIPE, stderr=follower,
    )  # fmt: skip
    os.close(follower)
    output = all_of(leader)
    printed, _ = process.communicate(timeout=100)

    assert process.returncode == 0
    assert b"\x1b" not in printed
    assert "3/3" in output
    assert "rows/s" in output


@pytest.mark.slow
def test_an_interrupt_reports_the_number_of_stored_scores(
    bare: Path, judge: FakeJudge, environment: dict[str, str]
) -> None:
    """Ctrl-C exits with 130 and no traceback."""
    judge.outage = Fault("hang")
    settings = {f"GERMANE_{name.upper()}": value for name, value in judge.settings().items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "germane", "score", written(rows(3)), "--cache", "scores.db"],
        env=environment | settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    deadline, pause = time.monotonic() + 40, threading.Event()
    while not judge.requests and time.monotonic() < deadline:
        pause.wait(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)

    assert (process.returncode, out) == (130, "")
    assert err.strip() == "germane: interrupted; the scores so far are in scores.db; run again to continue"


@pytest.mark.slow
@pytest.mark.parametrize("safe_path", ["", "1"])
def test_scorer_modules_in_the_current_directory_are_found(
    bare: Path, environment: dict[str, str], safe_path: str
) -> None:
    """The installed command and `python -m germane` find them, unless Python runs in safe-path mode."""
    (bare / "our_scorers.py").write_text("import germane\n\n\n@germane.scorer\ndef half(exchange):\n    return 0.5\n")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("germane")), "score", written(rows(3)), "--scorer", "half", "--json"],
        env=environment | {"GERMANE_IMPORTS": "our_scorers", "PYTHONSAFEPATH": safe_path},
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip

    found = json.loads(done.stdout)
    if safe_path:
        assert (done.returncode, "No module named 'our_scorers'" in found["error"]) == (1, True)
    else:
        assert (done.returncode, found["summary"][0]["mean"]) == (0, 0.5)
