"""The settings on the channels page are valid."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cases import each

from germane.alerting.channels.factory import build_channels
from germane.settings import load_settings
from germane.settings.channels import CHANNEL_TYPES

PAGE = Path(__file__).parents[2] / "docs" / "channels.md"
BLOCKS = re.findall(r"(?ms)^```toml\n(.*?)^```", PAGE.read_text(encoding="utf-8"))


def test_the_channels_page_shows_every_channel_type() -> None:
    """Each type is shown with its required settings."""
    everything = "".join(BLOCKS)

    assert [name for name in CHANNEL_TYPES if f'type = "{name}"' not in everything] == []


@each("block", BLOCKS)
def test_settings_on_the_channels_page_are_valid(bare: Path, block: str) -> None:
    """A pasted block configures a channel or a rule."""
    (bare / "germane.toml").write_text(block, encoding="utf-8")

    settings = load_settings()
    assert len(build_channels(settings)) + len(settings.rules) == 1
