"""The harness is a few modules beside the tests, and a script of its own: their folder is where both look for them."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = str(Path(__file__).parent)
if FOLDER not in sys.path:
    sys.path.append(FOLDER)
