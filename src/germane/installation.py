"""The command that installs one of germane's extras from the same source as germane itself."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname


def install_command(extra: str) -> str:
    """Return a pip command for an extra: from germane's own directory, file or repository, or else from the index.

    If germane was installed from a clone, the package index may not have ``germane[extra]``.
    """
    return f"pip install {_requirement(extra)}"


def _requirement(extra: str) -> str:
    origin, needed = _origin(extra)
    url = origin.get("url")
    if not isinstance(url, str):
        return f"'germane[{extra}]'"
    if not url.startswith("file:"):
        version_control = origin.get("vcs_info")
        kind = f"{version_control['vcs']}+" if isinstance(version_control, dict) and "vcs" in version_control else ""
        return shlex.quote(f"germane[{extra}] @ {kind}{url}")
    path = Path(url2pathname(urlsplit(url).path))
    if not path.exists():  # the image or directory was built elsewhere
        return " ".join(map(shlex.quote, needed)) or f"'germane[{extra}]'"
    directory = origin.get("dir_info")
    is_editable = isinstance(directory, dict) and bool(directory.get("editable"))
    return ("-e " if is_editable else "") + shlex.quote(f"{path}[{extra}]")


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
