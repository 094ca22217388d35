"""Opening a page in the browser, where there is one with a window."""

from __future__ import annotations

import os
import sys


def open_in_browser(address: str) -> bool:
    """Return whether a browser was asked to show it. One that would take over the terminal is not."""
    if sys.platform not in {"darwin", "win32"} and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    import webbrowser

    return webbrowser.open(address)


def local(address: str) -> str:
    """Return under which address this machine itself asks for what is served on all of its addresses."""
    return address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
