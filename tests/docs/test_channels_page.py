"""The settings that the page on channels shows are settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from germane.alerting.channels import build_channels
from germane.settings import load_settings

PAGE = Path(__file__).parents[2] / "docs" / "channels.md"
BLOCKS = re.findall(r"(?ms)^```toml\n(.*?)^```", PAGE.read_text(encoding="utf-8"))


def test_every_kind_is_shown() -> None:
    """With what it needs."""
    everything = "".join(BLOCKS)

    assert [kind for kind in ("webhook", "slack", "pagerduty", "alertmanager", "email") if kind not in everything] == []


@pytest.mark.parametrize("block", BLOCKS)
def test_the_settings_on_the_page_are_taken(bare: Path, block: str) -> None:
    """Who pastes a block has a channel."""
    (bare / "germane.toml").write_text(block, encoding="utf-8")

    assert len(build_channels(load_settings())) == 1
