"""The repository: links, the lock file, the command, the changelog and make targets."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Written so that this file does not match itself.
LOCAL_NAMES = [
    r"pypi\.org",
    r"pythonhosted\.org",
    r"npmjs\.(org|com)",
    r"deb\.debian\.org",
    r"(^|[^[:alnum:]_.~-])/([r]oot|[w]ork|home/[a-z]+|Users/[A-Za-z]+)/",
]


def test_each_link_at_the_root_points_to_its_package(root: Path, git: Callable[..., list[str]]) -> None:
    """Git has a relative link. A checkout without symbolic links has a text file instead, which is also accepted."""
    packages = ["scorers", "storage", "tracer"]
    assert [line.split()[0] for line in git("ls-files", "--stage", *packages)] == ["120000"] * 3
    for package in packages:
        link, target = root / package, Path("src/germane", package)
        if link.is_symlink():
            assert link.readlink() == target, package
        else:
            assert link.read_text(encoding="utf-8").strip() == target.as_posix(), package


def test_no_file_contains_a_registry_host_or_a_personal_path(git: Callable[..., list[str]]) -> None:
    """The lock file and the documents work on any machine, with or without a mirror."""
    patterns = [option for pattern in LOCAL_NAMES for option in ("-e", pattern)]
    assert git("grep", "-nIE", *patterns) == []


def requirements(root: Path) -> Iterator[Requirement]:
    """Yield all requirements in pyproject.toml: those of the package, its extras and the dependency groups."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [*project["project"]["optional-dependencies"].values(), *project["dependency-groups"].values()]
    for group in [project["project"]["dependencies"], *groups]:
        yield from map(Requirement, group)


def test_the_lock_file_meets_all_requirements(root: Path) -> None:
    """If this test fails after a change to pyproject.toml, run ``make lock``."""
    lock = (root / "requirements.lock").read_text(encoding="utf-8")
    locked = {canonicalize_name(name): release for name, release in re.findall(r"(?m)^([\w.-]+)==([\w.]+)", lock)}

    unmet = [
        str(wanted)
        for wanted in requirements(root)
        if canonicalize_name(wanted.name) not in locked
        or not wanted.specifier.contains(locked[canonicalize_name(wanted.name)])
    ]

    assert unmet == []


def test_every_locked_release_has_a_hash(root: Path) -> None:
    """The hashes ensure that only the locked files can be installed."""
    lock = (root / "requirements.lock").read_text(encoding="utf-8")
    releases = re.split(r"(?m)^(?=[\w.-]+==)", lock)[1:]

    assert [release.splitlines()[0] for release in releases if "--hash=sha256:" not in release] == []


def test_the_germane_command_is_installed() -> None:
    """The entry point ``germane`` can be loaded."""
    (command,) = entry_points(group="console_scripts", name="germane")

    assert callable(command.load())


def test_the_changelog_has_the_current_version(root: Path) -> None:
    """The installed version has a heading in the changelog."""
    assert f"## [{version('germane')}]" in (root / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_target_that_documents_mention_exists(root: Path, page: str) -> None:
    """No command in a document fails with ``No rule to make target``."""
    targets = set(re.findall(r"(?m)^([a-z]+):", (root / "Makefile").read_text(encoding="utf-8")))
    named = set(re.findall(r"(?m)(?:`|^\s*|\$ )make ([a-z]+)", (root / page).read_text(encoding="utf-8")))

    assert named <= targets


def test_the_metadata_names_authors_and_supported_python_versions(root: Path) -> None:
    """The package's page shows its authors and the supported Python versions, which match requires-python."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [int(found[1]) for line in project["classifiers"] if (found := re.search(r":: 3\.(\d+)$", line))]

    assert project["authors"]
    assert project["requires-python"] == f">=3.{min(listed)}"
    assert listed == list(range(min(listed), max(listed) + 1))
