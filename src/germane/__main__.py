"""Entry point of ``python -m germane``."""

from __future__ import annotations

from germane.cli import main

if __name__ == "__main__":
    main()
