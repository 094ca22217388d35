"""What a structured result says about its call: whether it failed or is pending, and which part is the payload."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Literal, get_args

from germane.recognizers import names_answer

Outcome = Literal["failed", "pending", "done"]

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NAMES = re.compile(
    r"(?i)(?P<success>(?:is_?)?(?:ok|success(?:ful)?))|(?P<error>(?:is_?)?(?:errors?|exception|failure))"
    r"|(?P<kind>type|kind|event|level|severity)"
    r"|(?P<status>(?:(?:http|response|request|ret|api|run|error|err)_?)?(?:status|state|code)(?:_?code)?|err_?no|header|meta)"
    r"|(?P<reason>(?:finish|stop|done)_?reason)"
)
"""Names of a Boolean, an error, a kind of event, and a status."""
_MAX_NAMES = 500
"""Number of names whose meanings are remembered."""
_FAILED_KIND = re.compile(r"\b(?:err|fail|exception)")
_FAILED = re.compile(
    r"\b(?:err|fail|fault|exception|time[ds]?.?out|denied|forbid|unauth|reject|cancel|abort|invalid|unavail|refus|exceed"
    r"|overload|block|expire|not.(?:found|allowed))"
)
_PENDING = re.compile(r"\b(?:queued|pending|accepted|scheduled|waiting|started|running|processing|in.progress)\b")
_STATUS_TEXTS = frozenset(
    {status.phrase.lower() for status in HTTPStatus}
    | {"success", "successful", "succeeded", "done", "completed", "complete", "finished", "failed", "failure", "error"}
)
_NOTHING = ("none", "None", "null", "")
_MAX_STATUS = 40
_OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_PAYLOADS = ("data", "result", "results", "payload", "body", "response", "output", "content", "text")


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case, whatever its spelling: ``on_end``, ``text-delta``, ``RUN_ERROR``."""
    return [word.lower() for word in _WORD.findall(name)]


def is_status_text(text: Any) -> bool:
    """Return whether a text only says how a call ended, such as "Success" or "Forbidden"."""
    if not isinstance(text, str) or len(text) > _MAX_STATUS:
        return False
    text = text.strip(' \n.!"').replace("_", " ").lower()
    return text in _STATUS_TEXTS or bool(_PENDING.fullmatch(text))


def outcome_of(value: Mapping[str, Any]) -> Outcome | None:
    """Return the outcome that an object states, such as the envelope of a result; None if it states none."""
    stated = {_outcome(meaning, name, value) for name in value if (meaning := _meaning_of(name)) is not None}
    return next((outcome for outcome in _OUTCOMES if outcome in stated), None)


@lru_cache(_MAX_NAMES)
def _meaning_of(name: str) -> str | None:
    found = _NAMES.fullmatch(name)
    return None if found is None else found.lastgroup


def _outcome(meaning: str, name: str, value: Mapping[str, Any]) -> Outcome | None:
    field = value[name]
    if meaning == "error":
        return "failed" if field and field not in _NOTHING else "done"
    if meaning == "success" or field is False:
        return "failed" if field in (False, 0, "false") else "done"
    if meaning == "kind":
        return "failed" if _FAILED_KIND.search(_words_in(field)) else None
    if isinstance(field, dict):
        return outcome_of(field)
    code = int(field[:3]) if isinstance(field, str) and field[:3].isdecimal() else field
    if isinstance(code, int | float):
        return "failed" if _is_error(code, name, value) else "done"
    words = _words_in(field)
    return "failed" if _FAILED.search(words) else "pending" if _PENDING.search(words) else "done" if words else None


def has_notice(value: Mapping[str, Any]) -> bool:
    """Return whether the message of an object is about the call: there is no result, a flag says that the call
    was blocked, or its status is neither a number nor known to be good."""
    for name, field in value.items():
        if field is None and (names_answer({name: field}) or name in _PAYLOADS):
            return True
        if field is True and _FAILED.search(" ".join(words_of(name))):
            return True
        if _meaning_of(name) == "status" and isinstance(field, str) and _words_in(field) not in {"", *_STATUS_TEXTS}:
            return True
    return False


def _is_error(code: float, name: str, value: Mapping[str, Any]) -> bool:
    """Return whether a number is an error. Those above the numbers of HTTP are one only if there is no result."""
    has_result = code >= 600 and bool(names_answer(value) or payload_of(value))
    return not (0 <= code < 400 or has_result) or (code > 0 and name.lower().startswith("err"))


def _words_in(field: Any) -> str:
    """Return the words of a status in lower case; nothing for other values."""
    is_short = isinstance(field, str) and len(field) <= _MAX_STATUS and field.count(" ") <= 2
    return " ".join(words_of(field)) if is_short else ""


def payload_of(value: Mapping[str, Any]) -> Any:
    """Return the part of an envelope that contains the result, if any."""
    return next((value[name] for name in _PAYLOADS if value.get(name) and not is_status_text(value[name])), None)
