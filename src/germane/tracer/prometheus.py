"""The Prometheus registry that exposes the instruments of this process, if any."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_registry: CollectorRegistry | None = None


def expose_registry(registry: CollectorRegistry | None) -> None:
    """Expose the instruments of the private meter provider in a registry. None stops that.

    Call it before the first measurement. A meter provider of the application is not affected.
    """
    global _registry
    _registry = registry


def exposed_registry() -> CollectorRegistry | None:
    """Return the registry, or None if instruments are not exposed."""
    return _registry


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=lambda: expose_registry(None))  # no server exposes the child's copy
