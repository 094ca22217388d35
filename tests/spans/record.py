"""Records the spans of instrumented applications as fixtures: python tests/spans/record.py [NAME ...].

The applications are the watched examples in examples/frameworks, and the small programs in tests/spans/applications for
further instrumentations. Each is installed in its newest version into an environment of its own, answers one question
from a stub model, and exports its spans, which replace the file in tests/spans/recorded. Then run
``make test ARGS=tests/recognizers`` to check that germane still reads them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FRAMEWORKS = Path(__file__).parents[1] / "frameworks"
sys.path.insert(0, str(FRAMEWORKS))
from environments import (  # noqa: E402 - scripts in another directory
    BUILD,
    EXAMPLES,
    ROOT,
    ask,
    build_wheel,
    install,
    python_command,
    running,
    surroundings,
    typescript_command,
)
from stub_model import questions  # noqa: E402

from germane.testing import ReceivedLog, ReceivedSpan  # noqa: E402

APPLICATIONS = Path(__file__).with_name("applications")
RECORDED = Path(__file__).with_name("recorded")


def span_record(span: ReceivedSpan, ids: dict[str, str], times: list[int]) -> dict[str, Any]:
    """Return a span with ids and times that do not change from run to run."""
    return {
        "name": span.name,
        "context": {"trace_id": ids[span.trace_id], "span_id": ids[span.span_id]},
        "parent_id": ids.get(span.parent_span_id or ""),
        "kind": span.kind,
        "start": [0, times.index(span.start)],
        "end": [0, times.index(span.end)],
        "status": {"status_code": span.status},
        "scope": {"name": span.scope},
        "attributes": dict(sorted(span.attributes.items())),
        "events": [{"name": event.name, "attributes": dict(event.attributes)} for event in span.events],
    }


def log_record(log: ReceivedLog, ids: dict[str, str]) -> dict[str, Any]:
    """Return a log record with the ids of :func:`span_record`."""
    return {
        "trace_id": ids.get(log.trace_id or ""),
        "span_id": ids.get(log.span_id or ""),
        "event_name": log.event_name,
        "body": log.body,
        "attributes": dict(sorted(log.attributes.items())),
    }


def record(path: Path, versions: dict[str, str]) -> dict[str, Any]:
    """Ask an application one question, and return its spans with the question, the answer and the document.

    Raises:
        ValueError: The application did not give the expected answer, or exported no spans.
    """
    ((question, (answer, document)),) = questions(1).items()
    is_python = path.suffix == ".py"
    command = python_command(path, 1) if is_python else typescript_command(path, 1)
    with surroundings() as around:
        # germane neither watches nor scores, so that the spans are those of the instrumentation alone.
        environment = {**around.environment(), "GERMANE_ROLE": "capture", "GERMANE_CAPTURE": "none"}
        environment["PYTHONPATH"] += f":{APPLICATIONS}"
        cwd = around.directory if is_python else BUILD / path.parent.name
        with running(command, environment, around.directory, cwd=cwd) as process:
            answers = ask(process, [question])
        spans = [span for span in around.receiver.spans if not span.scope.startswith("germane")]
        logs = around.receiver.logs
        errors = (around.directory / "errors.txt").read_text(encoding="utf-8").strip()
    if answers != [answer] or not spans:
        raise ValueError(f"{len(spans)} spans, answers {answers}: {errors[-600:]}")
    times = sorted({time for span in spans for time in (span.start, span.end)})
    ids: dict[str, str] = {}
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        ids.setdefault(span.trace_id, f"{len(ids) + 1:032x}")
        ids[span.span_id] = f"{len(ids) + 1:016x}"
    return {
        "versions": versions,
        "expected": {"question": question, "answer": answer, "document": document},
        "spans": [span_record(span, ids, times) for span in sorted(spans, key=lambda span: (span.end, -span.start))],
        "logs": [log_record(log, ids) for log in logs],
    }


def applications(names: Iterable[str]) -> list[Path]:
    """Return the applications with these names, or all of them."""
    found = [path for folder in (EXAMPLES, APPLICATIONS) for path in sorted(folder.glob("*/*.*"))]
    wanted = {*names}
    return [
        path
        for path in found
        if path.suffix in {".py", ".ts"}
        and not path.stem.startswith("observed")
        and (not wanted or path.parent.name in wanted)
    ]


def main() -> None:
    """Record each application, and exit with 1 if any of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a directory of examples or applications")
    parser.add_argument("--pinned", action="store_true", help="install the versions in the requirements instead")
    options = parser.parse_args()
    RECORDED.mkdir(exist_ok=True)
    wheel, failed, versions = build_wheel(), False, dict[Path, dict[str, str]]()
    for path in applications(options.names):
        name = re.sub(r"-(watched|received|app)", "", f"{path.parent.name}-{path.stem}")
        try:
            if path.parent not in versions:
                versions[path.parent] = install(path.parent, wheel, newest=not options.pinned)
            recording = record(path, versions[path.parent])
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            failed = True
            sys.stdout.write(f"FAILED {name}: {error}\n")
            continue
        text = json.dumps(recording, indent=1, ensure_ascii=False) + "\n"
        text = text.replace(f"{ROOT}/", "")  # in the attributes with paths of source files
        (RECORDED / f"{name}.json").write_text(text, encoding="utf-8")
        installed = ", ".join(f"{package} {version}" for package, version in versions[path.parent].items())
        sys.stdout.write(f"ok     {name}: {len(recording['spans'])} spans with {installed}\n")
        sys.stdout.flush()
    sys.exit(failed)


if __name__ == "__main__":
    main()
