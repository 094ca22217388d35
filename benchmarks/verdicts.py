"""The verdict on many generated installations: python benchmarks/verdicts.py [--sets 20] [--routes 20] [--seed 1].

Each installation has three services, each with 20 routes and 20 to 50 answers a day on each. In half of them one route
falls by 0.2 to 0.3, at a random hour. The scores are written to an SQLite database as workers write them. With and
without baselines, and with and without alert evaluation, the verdict of the overview and of germane report must name
the service and the route of the drop, and must say that nothing changed in quiet installations. It must be the same in
every window. The exit code is 1 if one verdict is wrong.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import product
from tempfile import TemporaryDirectory

from common import Goals
from streams.fleets import NOW, Installation

from germane.cli.commands.report.data import load_report, load_verdict
from germane.insights import WINDOWS, InsightContext, ViewParams, load_overview, report_sentence
from germane.settings import load_settings
from germane.storage import TrackingStore

NO_CHANGE = "No clear change on any of "
STATES = tuple(product((False, True), repeat=2))
"""Whether there are baselines, and whether alert rules are evaluated."""


def first_sentences(store: TrackingStore) -> set[str]:
    """Return the verdicts of the overview in every window, and of the report."""
    settings = load_settings(database="sqlite://")
    context = InsightContext(store=store, settings=settings, now=lambda: NOW)
    found = set()
    for window, length in WINDOWS.items():
        view = ViewParams(window=window, since=NOW - length, until=NOW, zone=None)
        found.add(report_sentence(load_overview(context, view).verdict))
    report = load_report(store, NOW - WINDOWS["24h"], NOW, service=None, route=None)
    return found | {load_verdict(store, settings, report)[0]}


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one installation in one state."""

    is_right: bool
    open_alerts: int
    sentences: tuple[str, ...]


def judge(seed: int, *, drop: bool, routes: int) -> list[Judged]:
    """Return the verdicts on an installation, in the order of :data:`STATES`."""
    made, results = Installation.draw(seed, drop=drop, routes=routes), []
    with TemporaryDirectory() as folder:
        with closing(TrackingStore(f"sqlite:///{folder}/written.db", clock=lambda: NOW)) as store:
            store.migrate()
            made.write(store)
            store.rollups.update()
        for number, (has_baseline, has_alerts) in enumerate(STATES):
            copy = shutil.copy(f"{folder}/written.db", f"{folder}/{number}.db")
            with closing(TrackingStore(f"sqlite:///{copy}", clock=lambda: NOW)) as store:
                if has_baseline:
                    made.learn(store)
                alerts = made.alert(store) if has_alerts else 0
                sentences = first_sentences(store)
            results.append(Judged(is_right(made, sentences), alerts, tuple(sentences)))
    return results


def is_right(made: Installation, sentences: Iterable[str]) -> bool:
    """Return whether there is one sentence, and it names the drop or says that nothing changed."""
    begins = NO_CHANGE
    if made.drop is not None:
        begins = f"1 of {len({answer[:2] for answer in made.answers})} routes got worse: relevancy fell on "
        begins += f"{made.drop.route} of {made.drop.service}. "
    return len({*sentences}) == 1 and all(sentence.startswith(begins) for sentence in sentences)


def described(state: tuple[bool, bool]) -> str:
    """Return a state in words."""
    return ", ".join(
        f"{'' if given else 'no '}{noun}" for given, noun in zip(state, ("baseline", "alerts"), strict=True)
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 1 if a verdict is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--routes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args(arguments)
    goals = Goals()
    with ProcessPoolExecutor(given.processes) as pool:
        for drop, name in ((True, "planted drop"), (False, "quiet")):
            judged: list[list[Judged]] = []
            seeds = range(given.seed, given.seed + given.sets)
            for seed, results in zip(
                seeds, pool.map(partial(judge, drop=drop, routes=given.routes), seeds), strict=True
            ):
                judged.append(results)
                for state, one in zip(STATES, results, strict=True):
                    if not one.is_right:
                        print(f"  seed {seed}, {described(state)}: {' | '.join(sorted(one.sentences))}", flush=True)
            for number, state in enumerate(STATES):
                alerts = sum(one[number].open_alerts > 0 for one in judged)
                right = sum(one[number].is_right for one in judged)
                line = f"{name}, {described(state)}: right of {given.sets}"
                goals.line(line, right, least=given.sets, note=f"  ({alerts} with an open alert)")
    return goals.exit_code()


if __name__ == "__main__":
    sys.exit(main())
