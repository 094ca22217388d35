"""Starting the command line takes little longer than importing its required packages."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.cases import each

from germane.exchange import Exchange
from germane.storage import TrackingStore

pytestmark = pytest.mark.slow

ROUNDS = 11


def seconds(*arguments: str) -> float:
    """Return the CPU time of a process. Unlike its duration, it does not include waiting for other processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True, env=dict(os.environ))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_takes_at_most_four_times_as_long_as_click(bare: Path) -> None:
    """The runs alternate, so that both run at the same speed of the machine."""
    rounds = [(seconds("-m", "germane", "--help"), seconds("-c", "import click")) for _ in range(ROUNDS)]

    shown, imported = (statistics.median(column) for column in zip(*rounds, strict=True))
    assert shown <= 4 * imported, f"{shown:.3f} s and {imported:.3f} s"


def test_a_report_takes_at_most_three_times_as_long_as_sqlalchemy(
    database: str, store: TrackingStore, scored: Callable[..., list[Exchange]]
) -> None:
    """The runs alternate, so that both run at the same speed of the machine."""
    scored(store, [0.1 * (number % 10) for number in range(100)])
    report = ("-m", "germane", "report", "--database", database)
    rounds = [(seconds(*report), seconds("-c", "import sqlalchemy")) for _ in range(ROUNDS)]

    reported, imported = (statistics.median(column) for column in zip(*rounds, strict=True))
    assert reported <= 3 * imported, f"{reported:.3f} s and {imported:.3f} s"


def test_help_imports_no_command(bare: Path) -> None:
    """Listing the commands loads no slow modules."""
    program = (
        "import sys\nfrom germane.cli import main\nsys.argv = ['germane', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'opentelemetry', 'pydantic', 'rich', 'sqlalchemy', 'starlette'}\n"
        "print('loaded:', *sorted(heavy & set(sys.modules)), *sorted(m for m in sys.modules if '.commands.' in m))"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout.splitlines()[-1] == "loaded:"


@each("command", [("report",), ("trend", "answer_relevancy"), ("worst",)])
def test_reading_commands_import_only_what_they_read(bare: Path, command: tuple[str, ...]) -> None:
    """They import no ORM, no migrations, no other dialect, and nothing that scores, traces or draws."""
    url = f"sqlite:///{bare}/germane.db"
    with closing(TrackingStore(url)) as store:
        store.migrate()
    program = (
        "import sys\nfrom germane.cli import main\n"
        f"sys.argv = ['germane', *{command}, '--database', {url!r}]\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code, ended.code\n"
        "heavy = {'alembic', 'numpy', 'openai', 'opentelemetry', 'sqlalchemy.dialects.postgresql', 'sqlalchemy.orm',\n"
        "    'sqlmodel', 'starlette', 'germane.insights.charts.trend', 'germane.scorers'}\n"
        "print('loaded:', *sorted(heavy & set(sys.modules)))"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout.splitlines()[-1] == "loaded:"
