"""A browser profile that records the problems that pages cause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
FOREVER = 4_102_444_800
_WATCH = """document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));"""
_OF_STATUS = "Failed to load resource: the server responded with a status of"


@dataclass
class Visitor:
    """A browser profile. ``troubles`` contains errors, policy violations and foreign requests."""

    context: BrowserContext
    home: str
    troubles: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()
    """Prefixes of messages that are expected and not recorded."""

    def page(self) -> Page:
        """Open a tab."""
        page = self.context.new_page()
        page.on("console", self._said)
        page.on("pageerror", lambda error: self._note(f"error: {error}"))
        page.on("request", self._asked)
        return page

    def look(self, address: str) -> Page:
        """Open a URL in a new tab."""
        page = self.page()
        page.goto(address)
        return page

    def _note(self, trouble: str) -> None:
        if not trouble.startswith(self.expected or ("\n",)):
            self.troubles.append(trouble)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self._note(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.home + "/", "data:")):
            self._note(f"asked: {request.url}")


@contextmanager
def visiting(browser: Browser, home: str, *, refused: bool = False, **options: Any) -> Iterator[Visitor]:
    """Open a new profile, and assert at the end that no problem occurred.

    Args:
        browser: A running browser.
        home: The URL of the dashboard.
        refused: Whether error responses, which the browser logs, are expected.
        options: Options of the browser context.
    """
    usual: dict[str, Any] = {"viewport": WIDE, "timezone_id": "UTC", "locale": "en-GB", "reduced_motion": "reduce"}
    context = browser.new_context(**(usual | options))
    zone = {"name": "germane_zone", "value": (usual | options)["timezone_id"], "url": home, "expires": FOREVER}
    context.add_cookies([zone])  # type: ignore[list-item]  # a valid cookie
    context.add_init_script(_WATCH)
    context.set_default_timeout(20_000)
    visitor = Visitor(context, home, expected=(_OF_STATUS,) if refused else ())
    yield visitor
    context.close()
    assert visitor.troubles == []
