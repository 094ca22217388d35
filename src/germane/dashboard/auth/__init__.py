"""Authentication: tokens, signed sessions and the login throttle."""

from __future__ import annotations
