"""What all commands share: options, output, signals and opening the database."""

from __future__ import annotations
