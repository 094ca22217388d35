"""How often alarms are right, simulated: python benchmarks/alarms.py [--quick] [--cells N:WANDER ...] [--json PATH].

Services are made up (benchmarks/streams/recipe.py: three routes, hours, weekends, days that differ); what learns,
watches, fires and resolves is the code that ships, with its two knobs at their defaults, fed a day or a week at once,
which changes nothing. Beside each figure stands what was reported of the method, which another implementation made with
other seeds, and the limit: false alarms at most .1 in 30 days and 1 a year, shares within .10, medians within 30 %, and
for drops that last at most so many notifications per drop found. Better than reported is no miss. The rule that most
tools offer is in the same table.

A miss is printed with how many standard errors it lies beyond its limit: of 250 figures some miss theirs by chance.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from streams.bands import Figure
from streams.cases import PER_DAY, WANDER, Cell
from streams.simulate import Mapped, chosen, rivalled, simulated
from streams.tables import line, miss, pages, read, written

QUICK_CELL, QUICK_TIMES = Cell(100, 0.01), 0.1


def main(arguments: list[str] | None = None) -> int:
    """Run, print, and return 1 if a limit is missed."""
    given = _parser().parse_args(arguments)
    if given.tables:
        print(pages(read(given.tables.read_text())))
        return 0
    cells = given.cells or ([QUICK_CELL] if given.quick else [Cell(n, wander) for n in PER_DAY for wander in WANDER])
    times = given.times * (QUICK_TIMES if given.quick else 1)
    print(f"{'N, wander and case':64}{'ours':>8} +-{'':6}{'theirs':>8}  limit")
    with ProcessPoolExecutor(given.processes) as pool:
        mapped = partial(pool.map, chunksize=1) if given.processes > 1 else map
        figures = [figure for cell in cells for figure in _cell(given.seed, cell, times, given.cases, mapped)]
    if given.json:
        given.json.write_text(written(figures))
    return _verdict(figures)


def _cell(seed: int, cell: Cell, times: float, cases: list[str], mapped: Mapped) -> list[Figure]:
    begun = time.perf_counter()
    some = chosen(cell, times=times, only=cases)
    figures = simulated(seed, cell, some, mapped) + rivalled(seed, cell, some, mapped)
    print("\n".join(map(line, figures)))
    print(f"{cell}: {time.perf_counter() - begun:.0f} s\n", flush=True)
    return figures


def _verdict(figures: list[Figure]) -> int:
    missed = [figure for figure in figures if figure.verdict == "missed"]
    better = sum(figure.verdict == "better" for figure in figures)
    limited = sum(bool(figure.verdict) for figure in figures)
    print(
        f"{limited} figures have a limit: {limited - len(missed)} are within it, {better} of them better than reported"
    )
    print("\n".join(["missed:", *map(miss, missed)]) if missed else "all limits are kept")
    return 1 if missed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--seed", type=int, default=20261120)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one kind of service, and a fifth of them")
    parser.add_argument("--times", type=float, default=1.0, help="so many times as many services")
    parser.add_argument("--cells", type=_cell_of, nargs="*", metavar="N:WANDER", help="kinds of services: 100:.02")
    parser.add_argument("--cases", nargs="*", default=[], metavar="NAME", help="only these: 'shift .05' year")
    parser.add_argument("--json", type=Path, metavar="PATH", help="where the figures are written")
    parser.add_argument("--tables", type=Path, metavar="PATH", help="print such figures as the page has them, and end")
    return parser


def _cell_of(text: str) -> Cell:
    per_day, _, wander = text.partition(":")
    return Cell(int(per_day), float(wander))


if __name__ == "__main__":
    sys.exit(main())
