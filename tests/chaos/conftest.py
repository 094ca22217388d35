"""The harness is a few modules beside the tests, and a script of its own: their folder is where both look for them."""

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
    """A judge in this process."""
    with FakeJudge() as running:
        yield running


@pytest.fixture
def stopped(bare: Path) -> Iterator[None]:
    """Nothing of germane runs before a test or after it."""
    yield
    germane.stop()


@pytest.fixture
def until() -> Callable[..., None]:
    """Waits for what another thread or process is about to do."""

    def wait(condition: Callable[[], object], seconds: float = 100.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it never came true"
            time.sleep(0.005)

    return wait


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Returns what germane has logged so far, but for debugging."""
    caplog.set_level(logging.INFO, logger="germane")
    ours = ("germane", "germane.")

    def lines() -> list[str]:
        return [record.getMessage() for record in caplog.records if f"{record.name}.".startswith(ours[1])]

    return lines
