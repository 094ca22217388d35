"""Charts as SVG, drawn on the server. None of them takes text that users or models wrote."""

from __future__ import annotations
