"""Draws architecture.svg from the import graph. Run: python docs/contributing/architecture.py"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
PICTURE = Path(__file__).with_name("architecture.svg")
ABOUT = {
    "cli": "command line",
    "demo": "a small RAG application",
    "dashboard": "pages, /metrics",
    "runtime": "start, stop",
    "process": "wiring of one process",
    "drain": "waiting for scores",
    "evaluation": "data sets",
    "insights": "read models",
    "monitor": "background work",
    "alerting": "rules, detector, channels",
    "sinks": "scores to trace UIs",
    "delivery": "queued items to targets",
    "tracer": "capture, spans",
    "scorers": "exchange in, score out",
    "storage": "tables, queries",
    "recognizers": "exchanges in spans",
    "receiver": "OTLP in",
}
"""Short descriptions shown in the boxes below the names."""
COMMON = {"settings", "registry", "errors", "exchange"}
"""Members of the bottom layers, which every package may import."""
WIDTH, ROW, BOX, GAP = 940, 84, 52, 16


def layers() -> list[list[str]]:
    """Return the layers of the import contract, top first, without those that every package imports."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    contract = next(contract for contract in contracts if contract["type"] == "layers")
    rows = [[name.strip().removeprefix("germane.") for name in layer.split("|")] for layer in contract["layers"]]
    return [row for row in rows if not COMMON & set(row)]


def imports(rows: Sequence[Sequence[str]]) -> set[tuple[str, str]]:
    """Return the imports between packages, without those implied by a chain of others."""
    graph = grimp.build_graph("germane")
    names = [name for row in rows for name in row]
    direct = {
        importer: {imported for imported in names if imported != importer and graph.direct_import_exists(
            importer=f"germane.{importer}", imported=f"germane.{imported}", as_packages=True
        )}
        for importer in names
    }  # fmt: skip
    reached = {name: direct[name].copy() for name in names}
    for name in reversed(names):  # layers: whatever a package imports comes after it
        reached[name].update(*(reached[imported] for imported in direct[name]))
    return {
        (importer, imported)
        for importer in names
        for imported in direct[importer]
        if not any(imported in reached[other] for other in direct[importer] - {imported})
    }


def draw(rows: Sequence[Sequence[str]], arrows: set[tuple[str, str]]) -> str:
    """Return the diagram: a row of boxes per layer, and an arrow per import."""
    boxes: dict[str, tuple[float, float, float]] = {}  # left, top, width
    parts = []
    for number, row in enumerate(rows):
        width = min(250.0, (WIDTH - GAP) / len(row) - GAP)
        left = (WIDTH - len(row) * (width + GAP) + GAP) / 2
        for position, name in enumerate(row):
            boxes[name] = left + position * (width + GAP), 16 + number * ROW, width
    for importer, imported in sorted(arrows):
        parts.append(_arrow(boxes, importer, imported))
    for name, (left, top, width) in boxes.items():
        about = ABOUT.get(name, "")
        parts.append(f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{BOX}" rx="6" class="box"/>')
        parts.append(f'<text x="{left + width / 2:g}" y="{top + (22 if about else 31):g}" class="name">{name}</text>')
        if about:
            parts.append(f'<text x="{left + width / 2:g}" y="{top + 41:g}" class="about">{escape(about)}</text>')
    height = 16 + len(rows) * ROW
    style = (
        "text{font-family:system-ui,sans-serif;text-anchor:middle}.name{font-size:15px;font-weight:600;fill:#1f2328}"
        ".about{font-size:12px;fill:#59636e}.box{fill:#f6f8fa;stroke:#8c959f}.arrow{stroke:#57606a;stroke-opacity:.45;fill:none}"
    )
    marker = '<marker id="tip" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n'
        "<title>Packages of germane: each may import the packages below it"
        f'</title>\n<style>{style}</style>\n<defs>{marker}<path d="M0 0L6 3L0 6z" fill="#57606a"/></marker></defs>\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _arrow(boxes: Mapping[str, tuple[float, float, float]], importer: str, imported: str) -> str:
    (left, top, width), (left_below, top_below, width_below) = boxes[importer], boxes[imported]
    start, end = left + width / 2, left_below + width_below / 2
    bend = (top + BOX + top_below) / 2
    path = f"M{start:g} {top + BOX:g}C{start:g} {bend:g} {end:g} {bend:g} {end:g} {top_below:g}"
    return f'<path d="{path}" class="arrow" marker-end="url(#tip)"/>'


def picture() -> str:
    """Return the diagram of the current code."""
    rows = layers()
    return draw(rows, imports(rows))


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
