"""The drop detector. It turns scores into transitions, and uses no database, clock or settings."""

from __future__ import annotations
