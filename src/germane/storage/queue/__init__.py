"""The scoring queue: candidates, tasks, claims, feedback and rescoring."""

from __future__ import annotations
