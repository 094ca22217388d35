from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def wheel(dist: Path) -> set[str]:
    """The files in the wheel, without the metadata."""
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as archive:
        return {name for name in archive.namelist() if not name.endswith("/") and ".dist-info/" not in name}


@pytest.fixture(scope="module")
def sdist(dist: Path) -> set[str]:
    """The files in the sdist, without the folder that holds them."""
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        return {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}


def test_the_wheel_holds_every_file_of_the_package_and_no_other(
    wheel: set[str], root: Path, git: Callable[..., list[str]]
) -> None:
    """What git has under src/germane is what a user installs: no room is lost on the way, no stray file slips in."""
    files = git("ls-files", "--cached", "--others", "--exclude-standard", "src/germane")

    assert {file.removeprefix("src/") for file in files if (root / file).exists()} == wheel


def test_the_wheel_brings_one_name(wheel: set[str]) -> None:
    """Other distributions own the names tracer and storage: the wheel adds germane to site-packages, nothing else."""
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
def test_the_wheel_carries_what_is_not_code(wheel: set[str], file: str) -> None:
    """Type checkers, scorers, the embedded model and its licence find their files."""
    assert f"germane/{file}" in wheel


@pytest.mark.parametrize(
    "path",
    [
        "tests/packaging/test_build.py",
        "benchmarks/labelled/plan.py",
        "benchmarks/peers/rows.py",
        "CHANGELOG.md",
        "Makefile",
        "requirements.lock",
    ],
)
def test_the_sdist_is_enough_to_test_from(sdist: set[str], path: str) -> None:
    """A distribution that builds from the sdist can run the tests it carries."""
    assert path in sdist


def test_the_sdist_leaves_the_doors_out(sdist: set[str]) -> None:
    """The links at the root of the repository are for readers: no archive follows or carries them."""
    assert not {file for file in sdist if file.partition("/")[0] in {"tracer", "scorers", "storage"}}
