"""Each example runs without changes, and its exchanges are stored."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

import germane
from germane.exchange import Exchange
from germane.testing import FakeJudge, OTLPReceiver

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOES = "Shoes can be returned within thirty days of delivery."
SERVE_FLASK = """
import germane
from flask_app import app
from werkzeug.serving import make_server

germane.start(service="flask-example")
server = make_server("127.0.0.1", 0, app, threaded=True)
print(f"running on http://127.0.0.1:{server.port}", flush=True)
server.serve_forever()
"""


@pytest.fixture
def environment(bare: Path) -> Iterator[dict[str, str]]:
    """An example's environment: a judge and an empty working directory."""
    with FakeJudge() as judge:
        settings = {f"GERMANE_{name.upper()}": value for name, value in judge.settings().items()}
        yield {**os.environ, **settings, "GERMANE_POLL_INTERVAL": "0.1", "PYTHONPATH": str(EXAMPLES)}


def exchanges() -> list[Exchange]:
    """Return the exchanges in the database, oldest first."""
    store = germane.Store()
    found = store.answers.list_exchanges()
    store.close()
    return found[::-1]


def run(example: str, environment: dict[str, str]) -> str:
    """Run an example to its end and return its output."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / example], env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@contextmanager
def serving(command: list[str], environment: dict[str, str], end: signal.Signals) -> Iterator[str]:
    """Run a server and yield its address. At the end, stop it with a signal."""
    process = subprocess.Popen(
        [sys.executable, *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        # A shell's background job and its child processes ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert process.stdout is not None
    try:
        found = None
        while not found and (line := process.stdout.readline()):
            found = re.search(r"running on (http://127.0.0.1:\d+)", line)
        assert found is not None
        yield found[1]
        process.send_signal(end)
        process.communicate(timeout=100)
    finally:
        process.kill()
        process.communicate()


def test_the_function_example_prints_scored_answers(environment: dict[str, str]) -> None:
    """Three questions are asked, and their answers are scored and printed, lowest score first."""
    printed = run("plain.py", environment).splitlines()

    first = exchanges()[0]
    assert (first.service, first.question, first.answer) == ("plain-example", "Can I return these shoes?", SHOES)
    assert [context.text for context in first.contexts] == [SHOES]
    assert len(exchanges()) == 3
    assert [bool(re.match(r"0\.\d\d \w+: ", line)) for line in printed] == [False] * 3 + [True] * 3


def test_the_data_set_example_prints_scores_and_a_mean(environment: dict[str, str]) -> None:
    """Each row with an answer has a score, and the mean has an interval."""
    printed = run("evaluate_csv.py", environment)

    mean, absent, *rows, checked = printed.splitlines()
    assert re.fullmatch(r"answer_relevancy: mean 0\.\d\d, 95% interval -?0\.\d\d to 0\.\d\d, 4 of 5 rows scored", mean)
    assert absent == "  1 without a score: missing_input"
    assert [row[6:].partition("  ->  ")[1] for row in rows] == ["  ->  "] * 4
    assert checked.startswith("answer_relevancy: mean 0.")
    assert checked.endswith(", not enough data to check it (need 20); 4 of 5 rows scored (1 missing_input).")
    assert run("evaluate_csv.py", environment) == printed  # the second run uses the cache


def test_the_custom_scorers_example_runs_without_a_judge(environment: dict[str, str]) -> None:
    """Two functions each score two answers without a judge, and one of them explains its scores."""
    printed = run("custom_scorer.py", environment).splitlines()

    assert printed == ["brevity 0.62", "brevity 1.00", *["no_small_talk 0.00 It says 'hope this helps'."] * 2]


def test_the_flask_example_stores_the_question_and_attributes(environment: dict[str, str]) -> None:
    """The selector reads the question from the request, and the handler's attributes are stored."""
    with serving(["-c", SERVE_FLASK], environment, signal.SIGINT) as address:
        reply = httpx2.post(f"{address}/ask", json={"q": "Can I return these shoes?"}).json()

    (exchange,) = exchanges()
    assert reply == {"answer": "Yes, within thirty days of delivery.", "exchange": exchange.id}
    assert (exchange.question, exchange.answer) == ("Can I return these shoes?", reply["answer"])
    assert [context.text for context in exchange.contexts] == [SHOES]
    assert (exchange.service, exchange.route, exchange.prompt_version) == ("flask-example", "ask", "7")


def test_the_fastapi_example_stores_the_streamed_answer(environment: dict[str, str]) -> None:
    """The stream reaches the client, its events are joined to the answer, and SIGTERM stops the server cleanly."""
    command = ["-m", "uvicorn", "fastapi_streaming:app", "--port", "0"]
    asked = {"question": "Can I return these shoes?", "session": "s1"}
    with OTLPReceiver() as receiver:
        environment |= receiver.environment()
        with (
            serving(command, environment, signal.SIGTERM) as address,
            httpx2.stream("POST", f"{address}/ask", json=asked) as response,
        ):
            events = [line for line in response.iter_lines() if line]
        spans = [span for span in receiver.spans if span.attributes.get("openinference.span.kind") == "CHAIN"]

    (exchange,) = exchanges()
    answer = f"{SHOES} (25)"
    assert events == [f"data: {word} " for word in answer.split()]
    assert exchange.question == asked["question"]
    assert " ".join((exchange.answer or "").split()) == answer
    assert [context.text for context in exchange.contexts] == [answer]
    assert (exchange.service, exchange.session) == ("fastapi-example", "s1")
    assert [span.span_id for span in spans] == [exchange.span_id], json.dumps([span.name for span in receiver.spans])


def test_the_mounted_dashboard_example_links_only_to_its_own_pages(environment: dict[str, str]) -> None:
    """Links stay below the path of the mounted dashboard, and other host names are rejected."""
    command = ["-m", "uvicorn", "dashboard_mounted:app", "--port", "0"]
    people = {"Accept": "text/html"}
    with serving(command, environment, signal.SIGTERM) as address:
        first = httpx2.get(f"{address}/germane/", headers=people)
        httpx2.post(f"{address}/ask", json={"question": "Can I return these shoes?"}).raise_for_status()
        deadline = time.monotonic() + 60
        while "1 exchange received" not in (shown := httpx2.get(f"{address}/germane/start", headers=people)).text:
            assert time.monotonic() < deadline, shown.text
        rebound = httpx2.get(f"{address}/germane/", headers={**people, "Host": "evil.example"})
        own = httpx2.get(f"{address}/docs", headers=people)

    assert (first.status_code, rebound.status_code, own.status_code) == (200, 403, 200)
    assert 'href="/germane/static/style.css' in first.text
    assert "content-security-policy" not in own.headers
    (exchange,) = exchanges()
    assert exchange.service == "mounted-example"
