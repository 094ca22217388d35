"""Access control: tokens, signed sessions, host names and the login throttle."""

from __future__ import annotations
