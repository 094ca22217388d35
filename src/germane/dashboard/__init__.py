"""Pages over the tracking database: an ASGI application, rendered on the server."""

from __future__ import annotations

from germane.dashboard.app import create_app

__all__ = ["create_app"]
