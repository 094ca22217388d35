"""The query parameters of pages. Unknown or malformed parameters are errors, so that a page always matches its URL."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

from germane import sanitize

MAX_VALUE_LENGTH: Final = 500
"""Maximum length of a value in characters."""
MAX_SHOWN: Final = 60
"""Maximum length of a name or value in an error message."""
MAX_NAMES_SHOWN: Final = 10
"""Maximum number of names in an error message."""


_SUFFIX: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
"""The part of a name that follows a prefix parameter, such as the name of an attribute."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter of a page."""

    name: str
    """The name. A name that ends with ``.`` stands for all names that begin with it."""
    expects: str = "text"
    """The valid values, in words, such as "a number from -1 to 1"."""
    is_valid: Callable[[str], bool] = bool
    choices: Sequence[str] = ()
    """The valid values, if they can be listed."""
    max_count: int = 1
    """How often the parameter may be given."""

    def matches(self, name: str) -> bool:
        """Return whether this parameter has the given name."""
        return (
            bool(_SUFFIX.fullmatch(name, len(self.name))) and name.startswith(self.name)
            if self.is_prefix
            else name == self.name
        )

    @property
    def is_prefix(self) -> bool:
        """Whether the parameter stands for all names that begin with its name."""
        return self.name.endswith(".")

    @property
    def label(self) -> str:
        """The name for error messages."""
        return f"{self.name}NAME" if self.is_prefix else self.name


def one_of(name: str, choices: Iterable[str]) -> Parameter:
    """Return a parameter with a fixed set of values."""
    values = tuple(choices)
    return Parameter(name, f"one of {', '.join(values)}", values.__contains__, values)


def check_query(
    request: Request, parameters: Sequence[Parameter], *, list_attributes: Callable[[], Collection[str]] = tuple
) -> None:
    """Raise an error if the URL has a parameter that the page does not have, or a malformed value.

    Parameters without a value count as absent, because forms submit their empty fields. ``list_attributes`` returns the
    names of recorded attributes, which the error for an unknown name suggests on pages with a parameter for them.

    Raises:
        HTTPException: With status 400. The message suggests a similar name or value, and states what is valid.
    """
    seen: Counter[str] = Counter()
    for name, value in request.query_params.multi_items():
        if not value:
            continue
        parameter = next((parameter for parameter in parameters if parameter.matches(name)), None)
        if parameter is None:
            names = [parameter.label for parameter in parameters]
            known = f"It has these parameters: {', '.join(names)}." if names else "It has no parameters."
            full_names = {
                attribute: f"{prefix.name}{attribute}"
                for prefix in parameters
                if prefix.is_prefix
                for attribute in list_attributes()
            }
            meant = get_close_matches(name, full_names, n=1, cutoff=0.8)
            given, choices = (full_names[meant[0]], full_names.values()) if meant else (name, names)
            raise query_error(f"This page has no parameter {_quote(name)}", given, choices, known)
        seen[name] += 1
        if seen[name] > parameter.max_count > 1:
            step = f"Use it at most {parameter.max_count} times."
            raise query_error(f"The parameter {_quote(name)} is repeated too often", "", (), step)
        if seen[name] > parameter.max_count:
            raise query_error(f"The parameter {_quote(name)} is given more than once", "", (), "Use it only once.")
        expected = f"The parameter {_quote(name)} must be {parameter.expects}."
        if len(value) > MAX_VALUE_LENGTH or "\0" in value or not parameter.is_valid(value):
            raise query_error(f"{_quote(name)} cannot be {_quote(value)}", value, parameter.choices, expected)


def query_error(problem: str, given: str, names: Collection[str], next_step: str) -> HTTPException:
    """Return the error for an invalid query, with status 400.

    ``problem`` is a sentence without a period, and ``next_step`` one that states what is valid. If one of the valid
    names is similar to the ``given`` one, the error suggests it.
    """
    by_folded = {name.casefold(): name for name in names}
    close = get_close_matches(given[:MAX_VALUE_LENGTH].casefold(), by_folded, n=1)
    hint = f": did you mean {_quote(by_folded[close[0]])}?" if close else "."
    return HTTPException(400, f"{problem}{hint}\n{next_step}")


def unknown_name_error(kind: str, given: str, names: Collection[str]) -> HTTPException:
    """Return the error for the name of a scorer, service or route that germane has never seen."""
    shown = [_quote(name) for name in sorted(names)[:MAX_NAMES_SHOWN]]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return query_error(f"There is no {kind} {_quote(given)}", given, names, f"Known: {', '.join(shown)}{more}.")


def _quote(text: str) -> str:
    return f"\u201c{sanitize.line(text, MAX_SHOWN)}\u201d"
