"""Fixtures of the packaging tests: the checkout, git, and built distributions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

Git = Callable[..., list[str]]

ROOT = Path(__file__).parents[2]
SCRIPTS = sysconfig.get_path("scripts")


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def git() -> Git:
    """A function that runs git in the checkout and returns its lines of output. Skips the test if there is none."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    return _git


def _git(*arguments: str) -> list[str]:
    command = ["git", "-c", "core.quotePath=false", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode in {0, 1}, result.stderr  # 1 means that git grep found nothing
    return result.stdout.splitlines()


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an sdist of the checkout, and a wheel built from this sdist."""
    if not (ROOT / "src").is_dir() or shutil.which("uv-build", path=SCRIPTS) is None:
        pytest.skip("needs the sources and uv_build")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT],
        env={**os.environ, "PATH": os.pathsep.join([SCRIPTS, os.environ["PATH"]])},
        capture_output=True,
        check=True,
    )
    return folder
