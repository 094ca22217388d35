"""The rules but ``drop``: a module for each, a pure function over numbers that the store read."""

from __future__ import annotations

from germane.monitor.old_rules import Rules as Rules
from germane.monitor.old_rules import tell_unfed as tell_unfed
