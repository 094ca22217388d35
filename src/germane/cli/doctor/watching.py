"""What the doctor finds of what watches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from germane.cli import learned
from germane.cli.doctor.finding import Finding
from germane.shown import harmless

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import Store

LATELY: Final = timedelta(days=14)
"""What was scored within it a rule may be about."""

FIX = "wait, or seed it: germane baseline import FILE, or --since 14d of what is stored"


def look_at_learning(store: Store) -> Iterator[Finding]:
    """Tell for which scores drops are not noticed yet."""
    for version in store.learning():
        yield Finding(f"baseline of {version.key.service}", "note", learned.line(version, store.now()), FIX)


def look_at_rules(store: Store, settings: Settings) -> Iterator[Finding]:
    """Tell of rules that look at nothing that was scored of late: by a typing error they would never fire."""
    means = store.summary(since=store.now() - LATELY, histograms=False) if settings.rules else []
    scorers = {mean.scorer for mean in means}
    for rule in settings.rules if means else ():
        if not rule.enabled:
            continue
        about = f"rule {harmless(rule.name, 40)}"
        if rule.scorer not in {None, *scorers}:
            message = f"there is no score of {harmless(rule.scorer, 40)} of the last two weeks"
            yield Finding(about, "note", message, f"there are scores of {', '.join(sorted(scorers))}")
        elif not any(rule.takes(mean.route) for mean in means):
            routes = ", ".join(harmless(route, 40) for route in rule.routes)
            yield Finding(about, "note", f"none of the routes of the last two weeks is {routes}", "correct its routes")
