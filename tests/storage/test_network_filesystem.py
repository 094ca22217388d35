"""SQLite on network file systems."""

from __future__ import annotations

from pathlib import Path

import pytest

from germane.errors import SettingsError
from germane.storage.db.engine import Database
from germane.storage.db.network_filesystem import NETWORK_FILESYSTEMS, filesystem_type, reject_network_filesystem

TABLE = rb"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw,nosuid - proc proc rw
40 22 0:44 / /srv/data rw,relatime shared:7 master:1 - nfs4 files:/data rw,vers=4.2
41 40 8:2 / /srv/data/local rw,relatime - xfs /dev/sdb1 rw
42 22 0:50 / /srv/our\040share rw - cifs //files/share rw
43 22 0:51 / /srv/twice rw - nfs files:/old rw
44 22 0:52 / /srv/twice rw - btrfs /dev/sdc rw
broken
45 22 0:53 / /srv/far rw - fuse.sshfs me@far:/ rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/germane.db", "ext4"),
        ("/srv/data/germane.db", "nfs4"),
        ("/srv/data/local/germane.db", "xfs"),
        ("/srv/database/germane.db", "ext4"),
        ("/srv/our share/a/germane.db", "cifs"),
        ("/srv/twice/germane.db", "btrfs"),
        ("/srv/far/germane.db", "fuse.sshfs"),
    ],
)
def test_the_longest_mount_point_determines_the_file_system(path: str, kind: str) -> None:
    """A common name prefix is not a mount point; of two file systems on one mount point, the later one counts."""
    assert filesystem_type(Path(path), TABLE) == kind


def test_without_a_mount_table_no_file_is_rejected() -> None:
    """Some operating systems have no mount table."""
    assert filesystem_type(Path("/srv/germane.db"), b"") is None
    reject_network_filesystem(Path("/srv/germane.db"), lambda: b"")


@pytest.mark.parametrize("kind", sorted(NETWORK_FILESYSTEMS))
def test_sqlite_on_a_network_file_system_is_rejected(kind: str, tmp_path: Path) -> None:
    """The error contains the reason and two alternatives. The file is not created."""
    table = f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:1 / {tmp_path} rw - {kind} far:/x rw\n".encode()
    with pytest.raises(SettingsError, match=rf"network file system \({kind}\).*locks.*PostgreSQL, or a file on"):
        Database(f"sqlite:///{tmp_path}/germane.db", mounts=lambda: table)

    assert list(tmp_path.iterdir()) == []


def test_symbolic_links_to_a_network_file_system_are_resolved(tmp_path: Path) -> None:
    """A local link to a remote file is rejected, too."""
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "far")
    table = f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:1 / {tmp_path}/far rw - nfs far:/x rw\n".encode()

    with pytest.raises(SettingsError, match="nfs"):
        Database(f"sqlite:///{tmp_path}/near/germane.db", mounts=lambda: table)


def test_in_memory_databases_and_servers_are_never_rejected() -> None:
    """In-memory databases and servers do not depend on mounted file systems."""
    table = b"22 1 8:1 / / rw - nfs4 far:/ rw\n"
    for url in ("sqlite://", "postgresql://localhost/germane"):
        Database(url, mounts=lambda: table)
