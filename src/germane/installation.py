"""The pip command that installs one of germane's extras from the same source as germane itself."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


def install_command(extra: str) -> str:
    """Return the pip command that installs an extra from where germane was installed: a directory, a file, a repository
    or the index.

    If germane was installed from a clone, the package index may not have ``germane[extra]``.
    """
    origin, needed = _origin(extra)
    url = origin.get("url")
    if not isinstance(url, str):
        return f"pip install 'germane[{extra}]'"
    if not url.startswith("file:"):
        version_control = origin.get("vcs_info")
        kind = f"{version_control['vcs']}+" if isinstance(version_control, dict) and "vcs" in version_control else ""
        return "pip install " + shlex.quote(f"germane[{extra}] @ {kind}{url}")
    from urllib.request import url2pathname  # imports an HTTP client

    path = Path(url2pathname(urlsplit(url).path))
    if not path.exists():  # germane was built on another machine
        return "pip install " + (" ".join(map(shlex.quote, needed)) or f"'germane[{extra}]'")
    directory = origin.get("dir_info")
    is_editable = isinstance(directory, dict) and bool(directory.get("editable"))
    return f"pip install {'-e ' if is_editable else ''}{shlex.quote(f'{path}[{extra}]')}"


def _origin(extra: str) -> tuple[dict[str, Any], list[str]]:
    """Return where germane was installed from (PEP 610), and the requirements of an extra."""
    with suppress(metadata.PackageNotFoundError, ValueError):
        distribution = metadata.distribution("germane")
        marker = f"extra == '{extra}'"
        needed = [
            requirement.partition(";")[0].strip()
            for requirement in distribution.requires or ()
            if marker in requirement.replace('"', "'")
        ]
        content = json.loads(distribution.read_text("direct_url.json") or "{}")
        return content if isinstance(content, dict) else {}, needed
    return {}, []
