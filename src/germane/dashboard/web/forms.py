"""Forms: their fields, and the token that protects them from cross-site request forgery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from markupsafe import Markup
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from germane.dashboard.web.routing import http_error

MAX_BODY_SIZE: Final = 65_536
"""Maximum size of a submitted form in bytes."""
MAX_FIELDS: Final = 200
CSRF_FIELD: Final = "csrf"
_MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
_SCOPE_KEY: Final = "germane.session"


@dataclass(slots=True, repr=False)
class LoginSession:
    """The session that ties a request to a browser. Contains secrets."""

    id: str
    """The value of the session cookie or the visitor cookie."""
    form_token: str = ""
    """The CSRF token for this session's forms."""
    form: dict[str, str] = field(default_factory=dict)
    """The fields of the submitted form. If a field is repeated, the last value."""
    fields: Sequence[tuple[str, str]] = ()
    """All fields of the submitted form, in order."""
    has_form: bool = False
    """Whether the page contains a form, which requires the browser to store the session."""


def attach_session(scope: Scope, session: LoginSession) -> None:
    """Store the session in the scope, from which :func:`form` and :func:`csrf` read it."""
    scope[_SCOPE_KEY] = session


def form(request: Request) -> dict[str, str]:
    """Return the fields of the submitted form, or an empty dict. If a field is repeated, the last value wins."""
    session: LoginSession = request.scope[_SCOPE_KEY]
    return dict(session.form)


def form_values(request: Request, name: str) -> list[str]:
    """Return the different values of a repeated field of the submitted form, in order."""
    session: LoginSession = request.scope[_SCOPE_KEY]
    return list(dict.fromkeys(value for field_name, value in session.fields if field_name == name))


def csrf(request: Request) -> Markup:
    """Return the hidden input element that every form must contain."""
    return Markup('<input type="hidden" name="{}" value="{}">').format(CSRF_FIELD, csrf_token(request))


def csrf_token(request: Request) -> str:
    """Return the token for a submit button named :data:`CSRF_FIELD`.

    Only the pressed button is submitted, so the token is not part of the URL if another button submits with GET.
    """
    session: LoginSession = request.scope[_SCOPE_KEY]
    session.has_form = True
    return session.form_token


async def read_form(scope: Scope, receive: Receive) -> list[tuple[str, str]]:
    """Return the fields of a submitted form, in order. Raise HTTPException if it is too large, or not a form."""
    headers = {name: value for name, value in scope["headers"] if name in {b"content-type", b"content-length"}}
    media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
    length = headers.get(b"content-length", b"0")
    too_large = http_error(413, "The form is too large.", f"Send at most {MAX_BODY_SIZE // 1024} kB.")
    if length.isdigit() and int(length) > MAX_BODY_SIZE:
        raise too_large
    parts, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":  # the client disconnected
            return []
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_SIZE:
            raise too_large
        more = message.get("more_body", False)
    body = b"".join(parts)
    if body and media_type != _MEDIA_TYPE:
        raise http_error(415, "The content type is not supported.", f"Send the form as {_MEDIA_TYPE}.")
    try:
        return parse_qsl(body.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise http_error(400, "The form has too many fields.", "Go back and submit the form again.") from None


def without_body(receive: Receive) -> Receive:
    """Return a ``receive`` callable that first reports an empty body, because the form has already been read."""
    is_read = False

    async def receive_rest() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": b"", "more_body": False}

    return receive_rest
