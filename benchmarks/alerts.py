"""Simulated accuracy of drop alerts: python benchmarks/alerts.py [--quick] [--cells N:WANDER ...] [--json PATH].

Services are synthetic (benchmarks/streams/recipe.py: three routes, hours, weekends, daily variation). The detector is
the production code with both parameters at their defaults. It processes a day or a week at a time; the batch size does
not change the result. Each figure is printed next to its limit and the value reported for a reference implementation
with different seeds. The limits are: at most 0.1 false alerts in 30 days and 1 per year; detection rates at most 0.10
below the reference; median delays at most 30% above the reference; and, for lasting drops, a maximum number of
notifications per detected drop. For comparison, a threshold on the hourly mean is also simulated.

For each missed limit, the command prints the distance from the limit in standard errors. A few of the 250 figures miss
their limits by chance.
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
from streams.simulate import Mapped, chosen, simulated, simulated_hourly_rule
from streams.tables import line, miss, pages, read, written

QUICK_CELL, QUICK_TIMES = Cell(100, 0.01), 0.1


def main(arguments: list[str] | None = None) -> int:
    """Run the simulation and print the figures; return 1 if a limit is missed."""
    given = _parser().parse_args(arguments)
    if given.tables:
        print(pages(read(given.tables.read_text())))
        return 0
    cells = given.cells or ([QUICK_CELL] if given.quick else [Cell(n, wander) for n in PER_DAY for wander in WANDER])
    times = given.times * (QUICK_TIMES if given.quick else 1)
    print(f"{'N, wander and case':64}{'ours':>8} +-{'':6}{'reported':>8}  limit")
    with ProcessPoolExecutor(given.processes) as pool:
        mapped = partial(pool.map, chunksize=1) if given.processes > 1 else map
        figures = [figure for cell in cells for figure in _cell(given.seed, cell, times, given.cases, mapped)]
    if given.json:
        given.json.write_text(written(figures))
    return _verdict(figures)


def _cell(seed: int, cell: Cell, times: float, cases: list[str], mapped: Mapped) -> list[Figure]:
    started_at = time.perf_counter()
    selected = chosen(cell, times=times, only=cases)
    figures = simulated(seed, cell, selected, mapped) + simulated_hourly_rule(seed, cell, selected, mapped)
    print("\n".join(map(line, figures)))
    print(f"{cell}: {time.perf_counter() - started_at:.0f} s\n", flush=True)
    return figures


def _verdict(figures: list[Figure]) -> int:
    missed = [figure for figure in figures if figure.verdict == "missed"]
    better = sum(figure.verdict == "better" for figure in figures)
    limited = sum(bool(figure.verdict) for figure in figures)
    print(f"{limited} figures have limits: {limited - len(missed)} meet them, {better} are better than reported")
    print("\n".join(["missed:", *map(miss, missed)]) if missed else "all limits are met")
    return 1 if missed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--seed", type=int, default=20261120)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="simulate one kind and a tenth of the services")
    parser.add_argument("--times", type=float, default=1.0, help="multiply the number of services")
    parser.add_argument(
        "--cells", type=_cell_of, nargs="*", metavar="N:WANDER", help="kinds of services, such as 100:0.02"
    )
    parser.add_argument(
        "--cases", nargs="*", default=[], metavar="NAME", help="simulate only these cases, such as 'shift .05'"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures to this file")
    parser.add_argument("--tables", type=Path, metavar="PATH", help="print such a file's Markdown tables and exit")
    return parser


def _cell_of(text: str) -> Cell:
    per_day, _, wander = text.partition(":")
    return Cell(int(per_day), float(wander))


if __name__ == "__main__":
    sys.exit(main())
