"""Pages. Each module parses requests, loads a read model and renders a template."""

from __future__ import annotations
