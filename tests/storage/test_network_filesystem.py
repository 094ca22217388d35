"""SQLite on a network file system is refused, where it can be told."""

from __future__ import annotations

from pathlib import Path

import pytest

from germane.errors import SettingsError
from germane.storage.db.engine import Database
from germane.storage.db.network_filesystem import NETWORK, kind_of, refuse_network

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
def test_the_longest_mount_above_a_file_says_where_it_lies(path: str, kind: str) -> None:
    """Names that merely begin alike are no mount points, and of two at one place the later one counts."""
    assert kind_of(Path(path), TABLE) == kind


def test_without_a_table_nothing_is_told() -> None:
    """Where the system does not say what is mounted, no file is refused."""
    assert kind_of(Path("/srv/germane.db"), b"") is None
    refuse_network(Path("/srv/germane.db"), lambda: b"")


@pytest.mark.parametrize("kind", sorted(NETWORK))
def test_every_network_file_system_is_refused(kind: str, tmp_path: Path) -> None:
    """The error says what is wrong, why, and both ways out of it; the file does not come into being."""
    table = f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:1 / {tmp_path} rw - {kind} far:/x rw\n".encode()
    with pytest.raises(SettingsError, match=rf"network file system \({kind}\).*locks.*PostgreSQL, or a file on a disk"):
        Database(f"sqlite:///{tmp_path}/germane.db", mounts=lambda: table)

    assert list(tmp_path.iterdir()) == []


def test_a_link_is_followed(tmp_path: Path) -> None:
    """A local name for a file far away is refused too."""
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "far")
    table = f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:1 / {tmp_path}/far rw - nfs far:/x rw\n".encode()

    with pytest.raises(SettingsError, match="nfs"):
        Database(f"sqlite:///{tmp_path}/near/germane.db", mounts=lambda: table)


def test_memory_and_servers_lie_on_no_file_system() -> None:
    """They are used whatever is mounted."""
    table = b"22 1 8:1 / / rw - nfs4 far:/ rw\n"
    for url in ("sqlite://", "postgresql://localhost/germane"):
        Database(url, mounts=lambda: table)
