"""Whether a file lies on another machine, where SQLite loses data."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from germane.errors import SettingsError

Mounts = Callable[[], bytes]
_TABLE: Final = Path("/proc/self/mountinfo")
_IN_USER_SPACE = (
    "afp", "beegfs", "blobfuse", "ceph", "ceph-fuse", "curlftpfs", "davfs", "gcsfuse", "glusterfs", "goofys", "juicefs",
    "lizardfs", "mfs", "mount-s3", "rclone", "s3fs", "smbnetfs", "sshfs",
)  # fmt: skip
_IN_THE_KERNEL = (
    "afs", "beegfs", "ceph", "cifs", "coda", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs3", "nfs4", "orangefs",
    "panfs", "pvfs2", "smb2", "smb3", "smbfs", "wekafs",
)  # fmt: skip
NETWORK: Final = frozenset([*_IN_THE_KERNEL, *(f"fuse.{name}" for name in _IN_USER_SPACE)])
"""Types of file systems, as Linux names them, that several machines may have mounted."""


def read_mounts() -> bytes:
    """Return Linux' table of what is mounted for this process (proc_pid_mountinfo(5)); elsewhere nothing."""
    if sys.platform != "linux":
        return b""
    try:
        return _TABLE.read_bytes()
    except OSError:  # hidden from this process: then it cannot be told
        return b""


def refuse_network(path: Path, mounts: Mounts = read_mounts) -> None:
    """Return if the file lies on this machine, as far as that can be told.

    Raises:
        SettingsError: it does not.
    """
    kind = kind_of(path.resolve(), mounts())
    if kind in NETWORK:
        raise SettingsError(
            f"{path} lies on a network file system ({kind}), where SQLite cannot be used: the locks that keep "
            "processes apart do not hold there, and its log needs memory that all of them share. Use PostgreSQL, or a "
            "file on a disk of this machine"
        )


def kind_of(path: Path, table: bytes) -> str | None:
    """Return the type of the file system of a resolved path: that of the longest mount point above it."""
    found: tuple[int, str | None] = (-1, None)
    for line in table.splitlines():
        place, kind = _mount(line)
        # The last one counts of those mounted over one another.
        if kind and len(place.parts) >= found[0] and path.is_relative_to(place):
            found = len(place.parts), kind
    return found[1]


def _mount(line: bytes) -> tuple[Path, str | None]:
    """Return mount point and type of one line, in which blanks and the like of paths stand as octal numbers."""
    left, _, right = line.partition(b" - ")
    fields, kinds = left.split(b" "), right.split(b" ")
    if len(fields) < 5 or not kinds[0]:
        return Path("/"), None
    place = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8) & 255]), fields[4])
    return Path(place.decode(errors="surrogateescape")), kinds[0].decode("ascii", "replace")
