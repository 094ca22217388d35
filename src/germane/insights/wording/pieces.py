"""Sentences on pages: text, emphasized text, and links to other pages, filled in from templates."""

from __future__ import annotations

from dataclasses import dataclass
from string import Formatter
from typing import Literal
from urllib.parse import quote, urlencode

from germane import sanitize
from germane.insights.formatting import route_path
from germane.phrasing import select_parts


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a sentence."""

    text: str
    kind: Literal["text", "strong", "route", "link"] = "text"
    href: str = ""
    """Path of a dashboard page, for a route or a link."""


Sentence = tuple[Piece, ...]


def fill_sentence(template: str, /, **values: object) -> Sentence:
    """Return the sentence of a template.

    In addition to the syntax of :mod:`germane.phrasing`, ``**...**`` is emphasized, and ``{name:text}`` is a link with
    this text, whose path is the value.
    """
    pieces: list[Piece] = []
    for index, part in enumerate(select_parts(template, values).split("**")):
        if index % 2:
            pieces.append(Piece(part.format_map(values), "strong"))
            continue
        for literal, name, link_text, _ in Formatter().parse(part):
            pieces += [Piece(literal)] if literal else []
            value = None if name is None else values[name]
            if isinstance(value, tuple):
                pieces += value
            elif value is not None:
                pieces.append(Piece(link_text, "link", str(value)) if link_text else Piece(str(value)))
    return tuple(pieces)


def route_or_service(route: str | None, service: str | None = None) -> Sentence:
    """Return a link to a route, or a phrase for the whole service if ``route`` is None. Name the service if given."""
    name = sanitize.line(service, 60)
    if route is None:
        return (Piece(f"the service {name} as a whole" if service else "the service as a whole", "strong"),)
    if not service:
        return (Piece(route, "route", route_path(route)),)
    query = urlencode({"service": service}, quote_via=quote, errors="replace")
    path = route_path(route)
    return (Piece(route, "route", f"{path}{'&' if '?' in path else '?'}{query}"), Piece(f" of {name}"))
