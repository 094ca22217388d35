"""A page of HTML with tables: complete in itself, without a script, and nothing in it can become one."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from germane.shown import harmless

Table = tuple[str, Sequence[str], Sequence[Sequence[object]]]
"""Title, headings, rows. One without rows is left out."""
WIDTH = 2_000
"""Characters of a cell that are shown."""
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid #8884;
  overflow-wrap: anywhere; min-width: 4rem; }
"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<p>{text}</p>
{tables}
</body>
</html>
"""


def page(title: str, text: str, tables: Sequence[Table]) -> str:
    """Return a page with these tables, all of it escaped."""
    shown = "\n".join(_table(*table) for table in tables if table[2])
    return _PAGE.format(title=escape(title), style=_STYLE, text=escape(text), tables=shown)


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f'<h2>{escape(title)}</h2>\n<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _cell(cell: object) -> str:
    return f'<td dir="auto">{escape(harmless(str(cell), WIDTH))}</td>'
