"""Generates shapes.json: the JSON output of commands that read data, for sample data. Run: python docs/shapes.py"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("shapes.json")
READ_COMMANDS: Mapping[str, Sequence[str]] = {
    "report": ("--since", "7d", "--compare"),
    "trend": (),
    "worst": ("-n", "3"),
    "alerts": ("--all",),
    "alerts show": ("{alert}",),
    "alerts --undelivered": (),
    "alerts backtest": ("--rule", "mean_threshold", "--set", "threshold=0.9", "--since", "2d"),
    "alerts sensitivity": ("--runs", "10"),
    "baseline show": (),
    "calibrate": (),
    "score": ("--estimate",),
    "doctor": ("--offline",),
    "config": (),
    "db check": (),
}
"""Commands that read data, some with the action or option that selects what they print, with their other arguments."""
FREE = frozenset(
    {"skipped", "failed", "attributes", "details", "labels", "reasons", "usages", "channels", "routes", "within"}
)
"""Objects whose keys are data."""
NULLABLE: Mapping[str, str] = {
    **dict.fromkeys(("acknowledged_at", "resolved_at"), "time"),
    **dict.fromkeys(("acknowledged_by", "cause", "effect_name", "resolve_reason", "route", "scorer"), "string"),
    **dict.fromkeys(("correlation", "difference", "effect_size", "spearman", "auc", "threshold", "window"), "number"),
}
"""Types of nullable values, by key. Whether a value is null in the sample week depends on the hour at which it ends."""
Shape = Any
OR = " | "
"""Separator of alternative types."""


def shape_of(value: Any, name: str = "") -> Shape:
    """Return the shape of a value: a type name, an object by key, or a list with the merged shape of its items."""
    if isinstance(value, dict):
        if name in FREE and value:
            return {"NAME": "any" if name == "details" else merged([shape_of(part) for part in value.values()])}
        return {key: shape_of(part, key) for key, part in value.items()}
    if isinstance(value, list):
        return [merged([shape_of(part) for part in value])] if value else []
    if value is None:
        return f"{NULLABLE[name]}{OR}null" if name in NULLABLE else "null"
    return _type_name(value)


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "time" if _is_time(value) else "string"


def _is_time(text: str) -> bool:
    try:
        return len(text) > 18 and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def merged(shapes: Sequence[Shape]) -> Shape:
    """Return a shape that matches all given shapes; ``any`` if they are incompatible."""
    nested = [shape for shape in shapes if not isinstance(shape, str)]
    if not nested:
        words = dict.fromkeys(word for shape in shapes for word in shape.split(OR))
        return OR.join(sorted(words, key=lambda word: word == "null"))
    if {shape for shape in shapes if isinstance(shape, str)} - {"null"}:
        return "any"
    if all(isinstance(shape, dict) for shape in nested):
        names = dict.fromkeys(name for shape in nested for name in shape)
        return {name: merged([shape[name] for shape in nested if name in shape]) for name in names}
    if all(isinstance(shape, list) for shape in nested):
        parts = [part for shape in nested for part in shape]
        return [merged(parts)] if parts else []
    return "any"


def fits(shape: Shape, documented: Shape) -> bool:
    """Return whether a printed shape matches the documented one: no other keys and the same types; keys may be missing.

    A documented null means that the value can be missing and that its type is unspecified.
    """
    if documented in ("any", "null") or shape in ("null", [], {}):
        return True
    if isinstance(shape, dict) and isinstance(documented, dict):
        return all(name in documented and fits(part, documented[name]) for name, part in shape.items())
    if isinstance(shape, list) and isinstance(documented, list):
        return not documented or fits(shape[0], documented[0])
    both = isinstance(shape, str) and isinstance(documented, str)
    return both and (set(shape.split(OR)) - {"null"}) <= set(documented.split(OR))


def command(verb: str, alert: str) -> list[str]:
    """Return the command line of a command."""
    return [*verb.split(), *(part.format(alert=alert) for part in READ_COMMANDS[verb]), "--json"]


def run() -> dict[str, Shape]:
    """Run all commands on a sample week and return the shapes of their output."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.dashboard.seeding import seed

    from germane.alerting import acknowledge_alert
    from germane.storage import TrackingStore

    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/germane.db"
        now = datetime.now(UTC)
        with closing(TrackingStore(url, clock=lambda: now)) as store:
            store.migrate()
            alert = seed(store, now).open_alert
            # Adds a second event, regardless of the time of day at which the sample week ends.
            acknowledge_alert(store, alert, by="Ada")
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("GERMANE_", "OPENAI_"))}
        found = {}
        for verb in READ_COMMANDS:
            called = [sys.executable, "-m", "germane", *command(verb, alert)]
            ended = subprocess.run(  # noqa: S603 - runs germane itself
                called, cwd=folder, env={**ours, "GERMANE_DATABASE": url}, capture_output=True, text=True, check=False
            )
            print(verb, ended.returncode, ended.stderr[:500], file=sys.stderr)
            found[verb] = shape_of(json.loads(ended.stdout))
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(run(), indent=1) + "\n", encoding="utf-8")
