"""Pages, one module or package per page."""

from __future__ import annotations
