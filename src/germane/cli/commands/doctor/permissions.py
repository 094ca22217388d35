"""Permission checks for the files of an SQLite database."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from germane.cli.commands.doctor.finding import Finding

OTHERS: Final = stat.S_IRWXO


def check_permissions(files: Sequence[Path]) -> Iterator[Finding]:
    """Check that other users cannot read the files, and that only trusted users can replace them.

    For SQLite, these are the database, its write-ahead log and the index of that log.
    """
    if not files or os.name != "posix":
        return
    directory = files[0].parent
    if open_files := [file for file in files if file.stat().st_mode & OTHERS]:
        names = " ".join(file.name for file in open_files)
        message = f"every user on this machine can read or change the questions and answers in {names}"
        yield Finding("database files", "warning", message, f"in {directory}: chmod o= {names}")
    mode = directory.stat().st_mode
    if not os.access(directory, os.W_OK | os.X_OK):
        message = f"this process cannot create files in {directory}, where SQLite creates its write-ahead log"
        yield Finding(
            "database directory",
            "error",
            message,
            "give the user that runs this process write access to this directory",
        )
    elif mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        message = f"every user on this machine can delete and replace files in {directory}"
        yield Finding("database directory", "warning", message, f"chmod o-w {directory}")
