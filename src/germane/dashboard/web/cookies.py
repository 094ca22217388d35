"""Cookies: only ours, only on our own requests, out of reach of scripts."""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from urllib.parse import quote

from starlette.types import Scope

ADMISSION: Final = "germane_session"
"""Of somebody who gave the token."""
VISIT: Final = "germane_visit"
"""To which forms belong where nobody has to give one."""


def cookie(scope: Scope, name: str, value: str, lifetime: timedelta) -> str:
    """Return a ``Set-Cookie`` header for what is under our root; without a value it takes the cookie away.

    Args:
        scope: Of the request: its prefix, and whether it came over https.
        name: Letters, digits and ``_``.
        value: Letters, digits and ``_-.``.
        lifetime: How long the browser keeps it.
    """
    root = quote(str(scope.get("root_path", "")).rstrip("/")) or "/"
    secure = "; Secure" if scope.get("scheme") == "https" else ""
    seconds = int(lifetime.total_seconds()) if value else 0
    return f"{name}={value}; HttpOnly; Max-Age={seconds}; Path={root}; SameSite=Strict{secure}"
