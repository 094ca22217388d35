"""The scoring queue: sampling candidates, tasks, claims, feedback and rescoring."""

from __future__ import annotations
