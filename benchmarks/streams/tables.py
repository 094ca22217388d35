"""Text and Markdown output of figures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from streams.bands import Figure
from streams.cases import BACKS, DECAY, LASTS, MIXES, NULL, ONSETS, YEAR, Cell

Key = tuple[str, str]
"""Case and measure."""
DAY = 24


def line(figure: Figure) -> str:
    """Format one figure with its reported value and its limit."""
    value, reported = number(figure.value), "" if figure.reported is None else number(figure.reported)
    name = f"{figure.cell!s:10} {figure.case:22} {figure.measure}"
    return f"{name:64}{value:>8} +-{number(figure.error):>6}{reported:>8}  {limit(figure):10}{figure.verdict}".rstrip()


def limit(figure: Figure) -> str:
    """Format a figure's limit."""
    if figure.least is not None:
        return f">= {number(figure.least)}"
    return "" if figure.most is None else f"<= {number(figure.most)}"


def miss(figure: Figure) -> str:
    """Describe a missed limit, with the distance in standard errors."""
    beyond = figure.beyond / figure.error if figure.error else math.nan
    return (
        f"{figure.cell}: {figure.case}, {figure.measure}: {number(figure.value)}, limit {limit(figure)} "
        f"(reported {'nothing' if figure.reported is None else number(figure.reported)}), "
        f"{number(beyond)} standard errors beyond, {figure.count} services"
    )


def number(value: float) -> str:
    """Format a figure with two decimals, or without decimals if it is a whole number or at least 10."""
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "inf"
    text = f"{value:.2f}" if abs(value) < 9.995 else f"{value:.0f}"
    return text if 0 < abs(value) < 0.995 else text.removesuffix(".00")


def readable(name: str) -> str:
    """Return the name of a case with leading zeros in its numbers: "shift 0.05" for "shift .05"."""
    return re.sub(r"(?<![\d.])\.(?=\d)", "0.", name)


def pages(figures: Sequence[Figure]) -> str:
    """Return the Markdown tables in docs/detector.md."""
    by_cell: dict[Cell, dict[Key, Figure]] = {}
    for figure in figures:
        by_cell.setdefault(figure.cell, {})[figure.case, figure.measure] = figure
    return "\n\n".join(
        f"### {title}\n\n{table(head, [[str(cell), *cells(found)] for cell, found in by_cell.items()])}"
        for title, head, cells in (
            ("False alerts and delays", ALERTS_HEAD, _alerts),
            ("Drops that last 28 days", LASTING_HEAD, _lasting),
            ("After a recovery", BACK_HEAD, _backs),
            (
                "Threshold on the hourly mean: the last hour is more than 0.05 below the baseline mean",
                HOURLY_RULE_HEAD,
                _hourly_rule,
            ),
        )
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table without empty rows."""
    lines = [f"|{'|'.join(row)}|" for row in (head, ["---"] * len(head), *(row for row in rows if any(row[1:])))]
    return "\n".join(lines)


ALERTS_HEAD = ("N, wander", "30 days", "year", "mix", *map(readable, (*ONSETS, DECAY)))
LASTING_HEAD = ("N, wander", *(readable(case.removesuffix(" for 28 d")) for case in LASTS))
BACK_HEAD = ("N, wander", *(readable(case.removesuffix(" for 15 d")) for case in BACKS))
HOURLY_RULE_HEAD = (
    "N, wander", "30 days", "mix", "p7 of 0.05", "p7 of 0.10", "tuned: p7 of 0.05", "tuned: p7 of 0.10",
    "notifications for 0.07 over 15 days",
)  # fmt: skip

Found = Mapping[Key, Figure]


def _alerts(found: Found) -> list[str]:
    return [
        cell(found, (NULL, "alerts")),
        cell(found, (YEAR, "alerts")),
        _worst(found, "alerts"),
        *(cell(found, (case, "p7"), (case, "median"), unit="h") for case in ONSETS),
        cell(found, (DECAY, "found"), (DECAY, "median"), unit="h"),
    ]


def _lasting(found: Found) -> list[str]:
    return [cell(found, (case, "notifications"), (case, "found"), (case, "per drop")) for case in LASTS]


def _backs(found: Found) -> list[str]:
    measures = ("median", "90%", "premature", "per drop")
    return [cell(found, *((case, measure) for measure in measures), unit="h") for case in BACKS]


def _hourly_rule(found: Found) -> list[str]:
    return [
        cell(found, (NULL, "hourly rule: alerts")),
        _worst(found, "hourly rule: alerts"),
        *(cell(found, (case, "hourly rule: p7")) for case in ("shift .05", "shift .10")),
        *(cell(found, (case, "hourly rule, tuned: p7")) for case in ("shift .05", "shift .10")),
        cell(found, (".07 for 15 d", "hourly rule: per drop")),
    ]


def _worst(found: Found, measure: str) -> str:
    both = [found[case, measure] for case in MIXES if (case, measure) in found]
    return "" if not both else cell(found, max((one.value, (one.case, one.measure)) for one in both)[1])


def cell(found: Found, *keys: Key, unit: str = "") -> str:
    """Return figures as one cell, with reported values in parentheses, and in bold if one figure misses its limit."""
    some = [found[key] for key in keys if key in found]
    if not some:
        return ""
    ours = "/".join(_with_unit(one, number(one.value), unit) for one in some)
    known = [_with_unit(one, number(one.reported), unit) for one in some if one.reported is not None]
    text = f"{ours} ({'/'.join(known)})" if known else ours
    return f"**{text}**" if any(one.verdict == "missed" for one in some) else text


def _with_unit(figure: Figure, text: str, unit: str) -> str:
    return text + unit if figure.measure in ("median", "90%") and text != "inf" else text


def written(figures: Sequence[Figure]) -> str:
    """Serialize figures as JSON, one per line; infinity and nan become strings."""
    return "[\n" + ",\n".join(json.dumps(_plain(asdict(figure)), allow_nan=False) for figure in figures) + "\n]\n"


def read(text: str) -> list[Figure]:
    """Parse figures written by :func:`written`."""
    return [Figure(**_numbers(each)) for each in json.loads(text)]


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in fields.items() if value is not None}
    return {name: _plain_number(value) if isinstance(value, float) else value for name, value in known.items()}


def _plain_number(value: float) -> float | str:
    return round(value, 4) if math.isfinite(value) else str(value)


def _numbers(fields: dict[str, Any]) -> dict[str, Any]:
    texts = ("case", "measure")
    return {
        name: value if name in texts or not isinstance(value, str) else float(value) for name, value in fields.items()
    }
