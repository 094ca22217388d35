"""HTTP building blocks: templates, forms, cookies, headers and errors."""

from __future__ import annotations
