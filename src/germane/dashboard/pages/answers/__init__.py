"""Pages about answers: the list, one answer, and its actions."""

from __future__ import annotations
