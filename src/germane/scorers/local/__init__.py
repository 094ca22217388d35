"""Models that run locally, in this process or in a child process."""

from __future__ import annotations
