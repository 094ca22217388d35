"""A dashboard served over a seeded database, and its screens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.dashboard.seeding import SEARCH, Seeded

from germane.dashboard import create_app
from germane.settings import load_settings
from germane.storage import TrackingStore
from germane.testing import Clock
from germane.web_server import WebServer

SCREENS: Sequence[str] = (
    "/",
    "/answers",
    "/answers?state=any&sort=newest&low=1&text=the",
    "/answers?group=question",
    "/answers?id={answer}&scorer=answer_relevancy",
    "/sessions/session-490",
    "/a/{answer}",
    f"/r/{SEARCH}",
    "/alerts",
    "/alerts/{open}",
    "/alerts/{open}/accept",
    "/alerts/{resolved}",
    "/alerts/backtest?replay=drop",
    "/compare?since=2026-11-19T05:30",
    "/compare?by=prompt_version",
    "/usage",
    "/labels",
    "/labels/{wave}",
    "/views?path=/answers",
    "/worker",
    "/traces/{trace}",
    "/start",
)
"""The URL of every screen."""
REFUSALS = {
    "/nowhere": 404,
    "/a/unknown": 404,
    "/r/unknown": 404,
    "/alerts/unknown": 404,
    "/traces/unknown": 404,
    "/logout": 405,
}
"""URLs that return an error page, with its status."""


@dataclass(frozen=True)
class Site:
    """A served dashboard and its data."""

    address: str
    store: TrackingStore
    clock: Clock
    seeded: Seeded

    def url(self, path: str = "/") -> str:
        """Return the URL of a path, which may contain ``{answer}``, ``{open}``, ``{wave}`` and so on."""
        names = {"open": self.seeded.open_alert, "resolved": self.seeded.resolved_alert}
        names |= {"trace": self.seeded.unreadable_trace, "wave": self.seeded.wave}
        if "{answer}" in path:
            names["answer"] = self.worst()
        return self.address + path.format(**names)

    def worst(self) -> str:
        """Return the id of an answer with a low score that is not a refusal."""
        found = self.store.answers.worst(scorer="answer_relevancy", route=SEARCH, limit=100)
        return next(one.exchange.id for one in found if one.score.label != "noncommittal")


@contextmanager
def served(url: str, seeded: Seeded, clock: Clock, **given: Any) -> Iterator[Site]:
    """Serve a database on a free port; the pages use its clock."""
    with closing(TrackingStore(url, clock=clock)) as store:
        given = {"refresh": timedelta(hours=1)} | given
        server = WebServer(
            create_app(load_settings(database="sqlite://"), store=store, now=clock, **given), host="127.0.0.1", port=0
        )
        with server.running():
            yield Site(server.address, store, clock, seeded)
