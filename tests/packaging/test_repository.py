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
ELSEWHERE = [
    r"pypi\.org",
    r"pythonhosted\.org",
    r"npmjs\.(org|com)",
    r"deb\.debian\.org",
    r"(^|[^[:alnum:]_.~-])/([r]oot|[w]ork|home/[a-z]+|Users/[A-Za-z]+)/",
]


@pytest.mark.parametrize("room", ["tracer", "scorers", "storage"])
def test_a_door_at_the_root_leads_to_its_room(root: Path, git: Callable[..., list[str]], room: str) -> None:
    """Git holds a relative link into the package; a checkout without links has its text, and needs no more."""
    assert [line.split()[0] for line in git("ls-files", "--stage", room)] == ["120000"]
    assert git("cat-file", "-p", f":{room}") == [f"src/germane/{room}"]
    door = root / room
    assert door.readlink() == Path("src/germane", room) if door.is_symlink() else door.is_file()


@pytest.mark.parametrize("pattern", ELSEWHERE)
def test_no_file_names_a_registry_or_somebodys_folder(git: Callable[..., list[str]], pattern: str) -> None:
    """The lock and the documents work for people with a mirror, on any machine."""
    assert git("grep", "-nIE", "-e", pattern) == []


def requirements(root: Path) -> Iterator[Requirement]:
    """All that pyproject.toml asks for: for running, as extras, for development."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [*project["project"]["optional-dependencies"].values(), *project["dependency-groups"].values()]
    for group in [project["project"]["dependencies"], *groups]:
        yield from map(Requirement, group)


def test_the_lock_meets_what_the_project_asks_for(root: Path) -> None:
    """A dependency added or raised in pyproject.toml and not locked is noticed here: run `make lock`."""
    lock = (root / "requirements.lock").read_text(encoding="utf-8")
    locked = {canonicalize_name(name): release for name, release in re.findall(r"(?m)^([\w.-]+)==([\w.]+)", lock)}

    unmet = [
        str(wanted)
        for wanted in requirements(root)
        if canonicalize_name(wanted.name) not in locked
        or not wanted.specifier.contains(locked[canonicalize_name(wanted.name)])
    ]

    assert unmet == []


def test_each_locked_release_has_a_hash(root: Path) -> None:
    """Nothing is installed that is not byte for byte what was locked."""
    lock = (root / "requirements.lock").read_text(encoding="utf-8")
    releases = re.split(r"(?m)^(?=[\w.-]+==)", lock)[1:]

    assert [release.splitlines()[0] for release in releases if "--hash=sha256:" not in release] == []


def test_the_command_is_there() -> None:
    """Installing germane brings a command `germane` that starts."""
    (command,) = entry_points(group="console_scripts", name="germane")

    assert callable(command.load())


def test_the_changelog_knows_this_version(root: Path) -> None:
    """What is installed has its own heading in the changelog."""
    assert f"## [{version('germane')}]" in (root / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_each_make_command_in_the_documents_exists(root: Path, page: str) -> None:
    """A newcomer who types what the page says does not hear `No rule to make target`."""
    targets = set(re.findall(r"(?m)^([a-z]+):", (root / "Makefile").read_text(encoding="utf-8")))
    named = set(re.findall(r"(?m)(?:`|^\s*|\$ )make ([a-z]+)", (root / page).read_text(encoding="utf-8")))

    assert named <= targets
