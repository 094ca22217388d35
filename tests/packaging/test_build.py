"""The files in the wheel and the sdist."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(dist: Path) -> set[str]:
    """The files in the wheel, except for the metadata."""
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as archive:
        return {name for name in archive.namelist() if not name.endswith("/") and ".dist-info/" not in name}


@pytest.fixture(scope="module")
def sdist(dist: Path) -> set[str]:
    """The files in the sdist, relative to its top-level directory."""
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        return {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}


def test_the_wheel_contains_exactly_the_files_of_the_package(
    wheel: set[str], root: Path, git: Callable[..., list[str]]
) -> None:
    """Exactly the files that git tracks under src/germane are installed."""
    files = git("ls-files", "--cached", "--others", "--exclude-standard", "src/germane")

    assert {file.removeprefix("src/") for file in files if (root / file).exists()} == wheel


def test_the_wheel_installs_only_the_germane_package(wheel: set[str]) -> None:
    """The names tracer and storage belong to other distributions."""
    assert {file.partition("/")[0] for file in wheel} == {"germane"}


@pytest.mark.parametrize(
    "file",
    [
        "py.typed",
        "scorers/local/minilm/vocab.txt",
        "scorers/local/minilm/NOTICE",
        "scorers/prompting/prompts/direct_rating.txt",
        "scorers/refusals/phrases.txt",
        "scorers/judge/prices.toml",
    ],
)
def test_the_wheel_contains_data_files(wheel: set[str], file: str) -> None:
    """Type checkers and scorers find their files, and the embedded model has its files and license."""
    assert f"germane/{file}" in wheel


@pytest.mark.parametrize(
    "path",
    [
        "tests/packaging/test_build.py",
        "benchmarks/labelled/rows.py",
        "benchmarks/peers/scores.py",
        "CHANGELOG.md",
        "Makefile",
        "requirements.lock",
    ],
)
def test_the_sdist_contains_tests_and_tools(sdist: set[str], path: str) -> None:
    """Distributors can run the tests from the sdist."""
    assert path in sdist


def test_the_sdist_contains_no_links_at_the_root(sdist: set[str]) -> None:
    """The links tracer, scorers and storage are only for readers of the repository."""
    assert not {file for file in sdist if file.partition("/")[0] in {"tracer", "scorers", "storage"}}
