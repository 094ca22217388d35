"""Building blocks of pages: URLs, forms, templates, errors and cookies."""

from __future__ import annotations
