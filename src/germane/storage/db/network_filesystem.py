"""Detection of network file systems, on which SQLite can lose data."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from germane.errors import SettingsError

MountTableReader = Callable[[], bytes]

_MOUNT_TABLE: Final = Path("/proc/self/mountinfo")
_FUSE: Final = (
    "afp", "beegfs", "blobfuse", "ceph", "ceph-fuse", "curlftpfs", "davfs", "gcsfuse", "glusterfs", "goofys", "juicefs",
    "lizardfs", "mfs", "mount-s3", "rclone", "s3fs", "smbnetfs", "sshfs",
)  # fmt: skip
_KERNEL: Final = (
    "afs", "beegfs", "ceph", "cifs", "coda", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs3", "nfs4", "orangefs",
    "panfs", "pvfs2", "smb2", "smb3", "smbfs", "wekafs",
)  # fmt: skip
NETWORK_FILESYSTEMS: Final = frozenset([*_KERNEL, *(f"fuse.{name}" for name in _FUSE)])
"""Linux names of file system types that several machines can mount at the same time."""


def read_mount_table() -> bytes:
    """Return this process's mount table on Linux, see proc_pid_mountinfo(5). Empty if it cannot be read."""
    if sys.platform != "linux":
        return b""
    try:
        return _MOUNT_TABLE.read_bytes()
    except OSError:
        return b""


def reject_network_filesystem(path: Path, mounts: MountTableReader = read_mount_table) -> None:
    """Raise SettingsError if a file is on a known network file system."""
    filesystem = filesystem_type(path.resolve(), mounts())
    if filesystem in NETWORK_FILESYSTEMS:
        raise SettingsError(
            f"{path} is on a network file system ({filesystem}), which SQLite does not support: file locks are not "
            "reliable there, and the write-ahead log requires memory that all processes share. Use PostgreSQL, or a "
            "file on a local disk"
        )


def filesystem_type(path: Path, mount_table: bytes) -> str | None:
    """Return the type of the file system that contains a resolved path, or None if it is unknown."""
    longest_match, depth = None, -1
    for line in mount_table.splitlines():
        left, _, right = line.partition(b" - ")
        fields, filesystem = left.split(b" "), right.split(b" ")[0].decode("ascii", "replace")
        if not filesystem:
            continue
        # Spaces and backslashes in paths are written as octal escapes.
        unescaped = re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8) & 255]), fields[4])
        mount_point = Path(unescaped.decode(errors="surrogateescape"))
        # If several file systems are mounted on the same point, the last one is visible.
        if len(mount_point.parts) >= depth and path.is_relative_to(mount_point):
            longest_match, depth = filesystem, len(mount_point.parts)
    return longest_match
