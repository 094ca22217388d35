"""Import path of the benchmarks, which are scripts outside the package."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = str(Path(__file__).parents[2] / "benchmarks")
if FOLDER not in sys.path:
    sys.path.append(FOLDER)
