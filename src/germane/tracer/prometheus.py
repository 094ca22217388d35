"""Where Prometheus may read the instruments of this process: a registry of its client, if somebody shows one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_registry: CollectorRegistry | None = None


def expose(registry: CollectorRegistry | None) -> None:
    """Have the private provider show its instruments in a registry too; None ends that.

    To be called before anything is measured. Where the application has a meter provider, that one is not changed.
    """
    global _registry
    _registry = registry


def exposed() -> CollectorRegistry | None:
    """Return the registry in which instruments are shown; None where nobody reads them there."""
    return _registry


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=lambda: expose(None))  # nobody serves the child's copy
