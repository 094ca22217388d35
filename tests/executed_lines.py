"""The lines that the fast tests of each file execute, measured with coverage and kept outside the repository.

Only test files that have changed are measured again. Lines are identified by their text, so that they are still found
after other lines of their module have changed.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/germane"
PYTEST = (Path(sys.executable).with_name("pytest"), "-q", "-p", "no:cacheprovider", "--tb=no")
FAST = ("-m", "not thorough and not slow")
"""Selects the fast tests. In this order, their CPU time is not limited: see ``costs.py``."""
CACHE = Path(tempfile.gettempdir(), f"germane-executed-lines-{hashlib.sha256(bytes(ROOT)).hexdigest()[:8]}.pickle")
UNMEASURED = {"browser", "chaos", "demo", "docs", "end_to_end", "examples", "packaging"}
"""Directories of tests that start applications, or that are about something else than the code."""
Lines = dict[str, set[str]]
"""The texts of lines by module, which is a path below ``src/germane``."""


class ExecutedLines:
    """The lines that the fast tests of each file execute."""

    def __init__(self, executed: dict[str, Lines]) -> None:
        self._executed = {file: lines for file, lines in executed.items() if lines}
        self._sizes = {file: sum(map(len, lines.values())) for file, lines in self._executed.items()}

    @classmethod
    def load(cls, processes: int) -> ExecutedLines:
        """Return the lines that were measured. Measure the test files that are new or have changed."""
        measured: dict[str, tuple[str, Lines]] = pickle.loads(CACHE.read_bytes()) if CACHE.exists() else {}
        paths = sorted((ROOT / "tests").rglob("test_*.py"))
        digests = {
            path.relative_to(ROOT).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in paths
            if path.relative_to(ROOT / "tests").parts[0] not in UNMEASURED
        }
        changed = [file for file, digest in digests.items() if measured.get(file, ("",))[0] != digest]
        if changed:
            found = _measure(changed, processes)
            measured |= {file: (digests[file], found.get(file, {})) for file in changed}
            CACHE.write_bytes(pickle.dumps(measured))
        return cls({file: measured[file][1] for file in digests})

    def files(self, place: str, is_wanted: Callable[[str, set[str]], object]) -> list[str]:
        """Return the test files that execute wanted lines, those that are most about a module or package first.

        Args:
            place: The module or package.
            is_wanted: Called with a module and the lines of it that a test file executes.
        """

        def closeness(file: str) -> tuple[float, int]:
            inside = sum(len(lines) for module, lines in self._executed[file].items() if module.startswith(place))
            return inside / self._sizes[file], -self._sizes[file]

        files = [
            file
            for file, lines in self._executed.items()
            if any(is_wanted(module, texts) for module, texts in lines.items())
        ]
        return sorted(files, key=closeness, reverse=True)


def _measure(files: Sequence[str], processes: int) -> dict[str, Lines]:
    """Run test files, and return the lines that each of them executes."""
    sys.stdout.write(f"measuring the lines that {len(files)} test files execute\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="germane-executed-lines-") as directory:
        environment = {**os.environ, "COVERAGE_FILE": f"{directory}/data", "PYTHONPATH": str(ROOT)}
        options = ["-n", str(processes), "--dist", "loadfile", "-p", "tests.executed_lines", *FAST]
        coverage_run: list[str | Path] = ["run", *PYTEST, *options, *files]
        for command in (coverage_run, ["combine", "--quiet"]):
            subprocess.run([sys.executable, "-m", "coverage", *command], cwd=ROOT, env=environment, check=False)
        return _read_lines(Path(directory, "data"))


def _read_lines(data_file: Path) -> dict[str, Lines]:
    data = coverage.CoverageData(str(data_file))
    data.read()
    executed: dict[str, Lines] = {}
    for path in data.measured_files():
        module = Path(path).relative_to(SOURCE).as_posix()
        files_of = data.contexts_by_lineno(path)
        for number, text in enumerate(Path(path).read_text().splitlines(), start=1):
            for file in filter(None, files_of.get(number, ())):  # no file: an import, or another process
                executed.setdefault(file, {}).setdefault(module, set()).add(text.strip())
    return executed


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Attribute the lines that are executed from now on to the file of a test."""
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.switch_context(item.path.relative_to(ROOT).as_posix())
