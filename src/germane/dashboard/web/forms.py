"""Forms: what was filled in, and the seal by which a page knows its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from markupsafe import Markup
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from germane.dashboard.web.http_error import Refusal

LARGEST: Final = 65_536
"""Bytes of a body."""
FIELDS: Final = 200
NAME: Final = "csrf"
"""The field that carries the seal."""
_KIND: Final = "application/x-www-form-urlencoded"
_VISIT: Final = "germane.visit"


@dataclass(slots=True, repr=False)
class Visit:
    """One request's place between the browser that sent it and the guard that let it in. It holds secrets."""

    name: str
    """By which the browser knows it: a session, or what it was given with the first form."""
    seal: str = ""
    """What the forms of this visit carry."""
    form: dict[str, str] = field(default_factory=dict)
    sealed: bool = False
    """Whether a page with a form was shown, so that the browser must remember the visit."""


def arrive(scope: Scope, visit: Visit) -> None:
    """Note the visit where screens find it."""
    scope[_VISIT] = visit


def form(request: Request) -> dict[str, str]:
    """Return the fields of the form that was sent, of one that came twice the last; empty where none was sent."""
    return dict(_visit(request).form)


def csrf(request: Request) -> Markup:
    """Return the hidden field that every form must hold, else it is refused."""
    visit = _visit(request)
    visit.sealed = True
    return Markup('<input type="hidden" name="{}" value="{}">').format(NAME, visit.seal)


def _visit(request: Request) -> Visit:
    visit: Visit = request.scope[_VISIT]
    return visit


async def read_form(scope: Scope, receive: Receive) -> dict[str, str]:
    """Read the fields of a form.

    Raises:
        Refusal: the body is too large, or no form.
    """
    headers = {name: value for name, value in scope["headers"] if name in {b"content-type", b"content-length"}}
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > LARGEST:
        raise _too_large()
    body = await _body(receive)
    if body and kind != _KIND:
        raise Refusal(415, "Only forms are accepted here.", f"Send it as {_KIND}.")
    try:
        fields = parse_qsl(body.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=FIELDS)
    except ValueError:
        raise Refusal(400, "The form has too many fields.", "Go back, and send it again.") from None
    return dict(fields)


async def _body(receive: Receive) -> bytes:
    parts, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":  # whoever sent it has gone
            return b""
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST:
            raise _too_large()
        more = message.get("more_body", False)
    return b"".join(parts)


def _too_large() -> Refusal:
    return Refusal(413, "That is more than a form may hold.", f"{LARGEST // 1024} kB are accepted at once.")


def already_read(receive: Receive) -> Receive:
    """Return a ``receive`` for what comes after the body: it says once that there is none."""
    said = False

    async def rest() -> Message:
        nonlocal said
        if said:
            return await receive()
        said = True
        return {"type": "http.request", "body": b"", "more_body": False}

    return rest
