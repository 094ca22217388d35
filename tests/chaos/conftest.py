"""Fixtures for the chaos tests, whose helper modules need this folder on the import path."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import germane
from germane.testing import FakeJudge

FOLDER = str(Path(__file__).parent)
if FOLDER not in sys.path:
    sys.path.append(FOLDER)


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    """A fake judge in this process."""
    with FakeJudge() as running:
        yield running


@pytest.fixture
def stopped(bare: Path) -> Iterator[None]:
    """Stop germane after the test."""
    yield
    germane.stop()


@pytest.fixture
def until() -> Callable[..., None]:
    """Wait for a condition that another thread or process makes true."""

    def wait(condition: Callable[[], object], seconds: float = 100.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "the condition was never met"
            time.sleep(0.005)

    return wait


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return the lines that germane has logged so far at level INFO and above."""
    caplog.set_level(logging.INFO, logger="germane")
    ours = ("germane", "germane.")

    def lines() -> list[str]:
        return [record.getMessage() for record in caplog.records if f"{record.name}.".startswith(ours[1])]

    return lines
