"""The archive's settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cases import each

from germane.errors import SettingsError
from germane.settings import load_settings


@each("text", ["ftp://bucket", "s3://", "s3://key:secret@bucket/x", "s3://bucket/x?endpoint_override=secret"])
def test_invalid_locations_are_rejected_without_their_secrets(bare: Path, text: str) -> None:
    with pytest.raises(SettingsError, match=r"archive.location: must be a folder or s3://BUCKET/PREFIX") as caught:
        load_settings(archive={"location": text})
    assert "secret" not in str(caught.value)


def test_a_location_is_absolute(bare: Path) -> None:
    """The application may change its working directory later."""
    settings = [load_settings(archive={"location": text}).archive for text in ("history", "s3://bucket/prefix/")]

    assert [archive.location for archive in settings if archive] == [str(bare / "history"), "s3://bucket/prefix"]


def test_days_are_archived_before_they_expire(bare: Path) -> None:
    with pytest.raises(
        SettingsError, match=r"archive.after_days must be less than retention.score_days \(30\), not 35"
    ):
        load_settings(archive={"location": "history"}, retention={"score_days": 30})
