"""The benchmarks are scripts beside the package: their folder is where Python looks for a script's own modules."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = str(Path(__file__).parents[2] / "benchmarks")
if FOLDER not in sys.path:
    sys.path.append(FOLDER)
