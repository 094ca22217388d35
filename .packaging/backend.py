"""The build backend uv_build, which first checks the version of Python."""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the pip of Python 3.10 builds first, and compares versions minutes later
    sys.exit(
        f"germane needs Python 3.11 or newer, and this is Python {sys.version.split()[0]}. "
        "Create the environment with a newer one, for example: python3.11 -m venv .venv"
    )

from uv_build import *  # noqa: F403
