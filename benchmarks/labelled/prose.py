"""The report's prose, by section of prose.md."""

from __future__ import annotations

import re
from pathlib import Path

from labelled.plan import SAME

_TEXT = Path(__file__).with_name("prose.md").read_text(encoding="utf-8")
_PARTS = re.split(r"^== (\w+)\n", _TEXT, flags=re.MULTILINE)[1:]
PROSE = {name: text.strip().replace("{same}", SAME) for name, text in zip(_PARTS[::2], _PARTS[1::2], strict=True)}
"""Text of each section."""
