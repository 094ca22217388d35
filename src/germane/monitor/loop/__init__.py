"""The background loop: scheduler, jobs, leader lease, heartbeat and backoff."""

from __future__ import annotations
