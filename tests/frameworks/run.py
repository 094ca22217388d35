"""Runs the examples in examples/frameworks with the real frameworks: python tests/frameworks/run.py [NAME ...].

Each framework is installed with germane into an environment of its own, below build/frameworks. Each example answers
questions from a stub model, is scored by a fake judge, and exports its spans to an OTLP receiver. A name is a
directory, such as ``langchain``, or an example, such as ``langchain/watched``. Needs the network, and Node.js for the
examples in TypeScript. The name ``handlers`` stands for the tests of handlers without options, which need no example.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from environments import (
    BUILD,
    EXAMPLES,
    ROOT,
    Surroundings,
    ask,
    build_wheel,
    install,
    python_command,
    running,
    start,
    surroundings,
    typescript_command,
    wait_for_line,
)
from stub_model import DOCUMENTS, questions

import germane

SCORE = "germane.evaluation.answer_relevancy"


@dataclass
class Outcome:
    """What one example has shown."""

    versions: str
    seconds: float = 0
    exchanges: int = 0
    scored: int = 0
    on_spans: int = 0
    by_carriers: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        scores = f"{self.scored} scored ({self.on_spans} on spans, {self.by_carriers} by carriers)"
        summary = f"{self.exchanges} exchanges, {scores} in {self.seconds:.1f} s with {self.versions}"
        return "\n    ".join([summary, *self.problems])


def wait_for_scores(database: str, number: int, timeout: float = 60) -> None:
    """Wait until the exchanges are scored, or until the timeout."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        with germane.Store(database) as store, contextlib.suppress(germane.GermaneError):
            found = store.answers.list_exchanges(limit=2 * number)
            if len(store.answers.get_scores([exchange.id for exchange in found])) >= number:
                return
        time.sleep(0.5)


def check(
    outcome: Outcome, path: Path, around: Surroundings, asked: dict[str, tuple[str, str]], answers: list[str]
) -> None:
    """Compare answers, exchanges, scores and spans with what was asked."""

    def require(condition: object, problem: Callable[[], str]) -> None:
        if not condition:
            outcome.problems.append(problem())

    errors = (around.directory / "errors.txt").read_text(encoding="utf-8")
    require("cannot read traces" not in errors, lambda: "traces are unreadable")
    expected = [answer for answer, _ in asked.values()]
    require(answers == expected, lambda: f"wrong answers, such as {next(iter({*answers} - {*expected}), None)!r}")
    with germane.Store(around.database) as store:
        found = store.answers.list_exchanges(limit=2 * len(asked))
        scores = store.answers.get_scores([exchange.id for exchange in found])
    outcome.exchanges = len(found)
    outcome.scored = sum(any(score.value is not None for score in values) for values in scores.values())
    require(outcome.exchanges == len(asked), lambda: f"{outcome.exchanges} exchanges instead of {len(asked)}")
    require(outcome.scored == len(asked), lambda: f"{outcome.scored} scored instead of {len(asked)}")
    pairs = {exchange.question: exchange.answer for exchange in found}
    wrong = [pair for pair in pairs.items() if asked.get(pair[0] or "", ("",))[0] != pair[1]]
    require(not wrong, lambda: f"{len(wrong)} wrong questions or answers, such as {wrong[0]}")
    require(pairs.keys() == asked.keys(), lambda: f"{len(asked.keys() - pairs.keys())} questions are missing")
    contexts = [
        (exchange.question, [context.text for context in exchange.contexts])
        for exchange in found
        if (texts := {context.text for context in exchange.contexts}) - {*DOCUMENTS}
        or asked.get(exchange.question or "", ("", ""))[1] not in texts
    ]
    if not path.stem.startswith("observed"):
        require(all(exchange.model for exchange in found), lambda: "exchanges without a model")
    require(not contexts, lambda: f"{len(contexts)} with wrong contexts, such as {contexts[0]}")

    keys = {(exchange.trace_id, exchange.span_id) for exchange in found}
    spans = around.receiver.spans
    missing = keys - {(span.trace_id, span.span_id) for span in spans}
    require(not missing, lambda: f"{len(missing)} spans of exchanges were not exported")
    scored = [span for span in spans if SCORE in span.attributes]
    carriers = [span for span in scored if span.attributes.get("openinference.span.kind") == "EVALUATOR"]
    direct = Counter((span.trace_id, span.span_id) for span in scored if span not in carriers)
    carried = Counter((link.trace_id, link.span_id) for span in carriers for link in span.links)
    outcome.on_spans, outcome.by_carriers = direct.total(), carried.total()
    once = Counter(dict.fromkeys(keys, 1))
    require(
        direct + carried == once, lambda: f"scores of other spans, or repeated: {list(direct + carried - once)[:3]}"
    )
    require(not once - direct - carried, lambda: f"{(once - direct - carried).total()} scores were not exported")


def run_example(path: Path, versions: str, number: int, concurrency: int) -> Outcome:
    """Ask one example, wait for the scores, and check everything that it has left behind."""
    outcome, asked, started = Outcome(versions), questions(number), time.monotonic()
    with surroundings() as around:
        run = run_node if path.suffix == ".ts" else run_python
        try:
            check(outcome, path, around, asked, run(path, around, list(asked), concurrency))
        except (germane.GermaneError, OSError, subprocess.SubprocessError) as error:
            outcome.problems.append(f"{type(error).__name__}: {error}")
        outcome.seconds = time.monotonic() - started
        if outcome.problems:
            outcome.problems += (around.directory / "errors.txt").read_text(encoding="utf-8").splitlines()[-15:]
    return outcome


def run_python(path: Path, around: Surroundings, asked: list[str], concurrency: int) -> list[str]:
    """Run an example in Python, which scores its own answers."""
    with running(python_command(path, concurrency), around.environment(), around.directory) as process:
        answers = ask(process, asked)
        if answers:
            wait_for_scores(around.database, len(asked))
    return answers


def run_node(path: Path, around: Surroundings, asked: list[str], concurrency: int) -> list[str]:
    """Run an example in Node.js, whose spans go to ``germane receive``."""
    environment, errors = around.environment(), around.directory / "errors.txt"
    germane_command = [sys.executable, "-m", "germane"]
    receive = [*germane_command, "receive", "--http", "0", "--grpc", "0", "--trace-wait", "2"]
    forward = ["--forward", around.receiver.endpoint]
    with contextlib.ExitStack() as stack:
        start(stack, [*receive, *forward], environment, around.directory)
        endpoint = wait_for_line(errors, r"receiving OTLP on (\S+) \(HTTP\)")
        start(stack, [*germane_command, "worker"], environment, around.directory)
        node = {**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
        with running(
            typescript_command(path, concurrency), node, around.directory, cwd=BUILD / path.parent.name
        ) as process:
            answers = ask(process, asked)
        if answers:
            wait_for_scores(around.database, len(asked))
    return answers


def test_handlers(wheel: Path, *, newest: bool) -> bool:
    """Run the tests of handlers without options in an environment with all frameworks. Return whether they passed."""
    install(ROOT / "tests" / "frameworks" / "handlers", wheel, newest=newest)
    settings = ("addopts=--import-mode=importlib", "markers=", "filterwarnings=")
    options = ["--noconftest", *(f"--override-ini={setting}" for setting in settings), "-p"]
    tests = [ROOT / "tests" / "tracer" / "test_bare_handlers.py", ROOT / "tests" / "runtime" / "test_gevent.py"]
    command = [BUILD / "handlers" / "bin" / "python", "-m", "pytest", "-q", *options, "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False).returncode == 0


def main() -> None:
    """Run the examples, print a line for each, and exit with 1 if any of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a framework, or one of its examples")
    parser.add_argument("--newest", action="store_true", help="install the newest versions of the frameworks")
    parser.add_argument("--requests", type=int, default=200, help="number of questions per example (default: 200)")
    parser.add_argument("--concurrency", type=int, default=20, help="number of concurrent questions (default: 20)")
    options = parser.parse_args()
    examples = sorted(path for suffix in ("py", "ts") for path in EXAMPLES.glob(f"*/*.{suffix}"))
    wanted = [
        path
        for path in examples
        if not options.names or {path.parent.name, f"{path.parent.name}/{path.stem}"} & {*options.names}
    ]
    tests_handlers = not options.names or "handlers" in options.names
    if not wanted and not tests_handlers:
        parser.error(f"no such example; there are {', '.join(sorted({path.parent.name for path in examples}))}")
    wheel, failed, versions = build_wheel(), 0, {}
    if tests_handlers:
        failed += not test_handlers(wheel, newest=options.newest)
    for path in wanted:
        name = path.parent.name
        try:
            if name not in versions:
                installed = install(path.parent, wheel, newest=options.newest)
                versions[name] = ", ".join(f"{package} {version}" for package, version in installed.items())
            outcome = run_example(path, versions[name], options.requests, options.concurrency)
        except subprocess.CalledProcessError as error:
            outcome = Outcome("", problems=[str(error)])
        failed += bool(outcome.problems)
        sys.stdout.write(f"{'FAILED' if outcome.problems else 'ok':6} {name}/{path.stem}: {outcome}\n")
        sys.stdout.flush()
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
