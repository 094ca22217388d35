"""Messages about a missing database file. It may be in another directory, or may not have been created yet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from germane import sanitize

MAX_DIRECTORIES: Final = 200
"""Maximum number of directories to search next to, below and above the expected one."""
MAX_PARENTS: Final = 3


class Absence(NamedTuple):
    """The reason there is no database, and the fix."""

    problem: str
    fix: str

    def __str__(self) -> str:
        return f"{self.problem}: {self.fix}"


def describe_absence(path: Path) -> Absence:
    """Describe a missing database file. If a nearby directory has a file with the same name, point to it."""
    where = "here" if path.parent == Path.cwd() else f"in {_show(path.parent)}"
    elsewhere = next(_nearby(path), None)
    if elsewhere is None and not os.access(path.parent, os.W_OK):
        return Absence(
            f"no {_show(path.name)} {where}, and this process may not create one",
            "make the folder writable for it, or set GERMANE_DATABASE to a file in another folder",
        )
    if elsewhere is None:
        return Absence(
            f"no {_show(path.name)} {where} yet",
            "start your application; germane.start() creates the database, and each observed answer is stored in it",
        )
    directory = _show(os.path.relpath(elsewhere.parent))
    return Absence(
        f"no {_show(path.name)} {where}; one is in {directory}",
        f"run this command in {directory}, or set GERMANE_DATABASE=sqlite:///{_show(elsewhere)}",
    )


def _nearby(path: Path) -> Iterator[Path]:
    """Yield files with the same name in directories below, next to and above that of ``path``."""
    directory = path.parent
    for candidate in (
        *_subdirectories(directory),
        *directory.parents[:MAX_PARENTS],
        *_subdirectories(directory.parent),
    ):
        file = candidate / path.name
        with suppress(OSError):
            if candidate != directory and file.is_file():
                yield file


def _subdirectories(directory: Path) -> list[Path]:
    with suppress(OSError), os.scandir(directory) as entries:
        return sorted(Path(entry.path) for entry in islice(entries, MAX_DIRECTORIES) if entry.is_dir())
    return []


def _show(path: str | Path) -> str:
    return sanitize.line(str(path), 200)
