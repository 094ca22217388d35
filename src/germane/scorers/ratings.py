"""Several ratings in one reply: each the expected value over the digits that could stand in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from germane.errors import ScoringError
from germane.scorers.protocols import Token
from germane.scorers.rating import GREATEST, LEAST, Rating, expected

_DIGIT = re.compile(rf"\A[\s\[,]*([{LEAST}-{GREATEST}])[\s\],}}]*\Z")
"""A rating that is a token of its own, but for what surrounds the items of a list."""


def expected_ratings(tokens: Sequence[Token], written: Sequence[float]) -> list[Rating] | None:
    """Return one rating per digit of the list that the tokens end with; see :func:`germane.scorers.rating.expected`.

    None where the tokens do not tell: there are none, the digits in them are not those that were ``written``, or in
    the place of one the digits hold less than half of the probability. Then what was written is all there is.
    """
    places = [token for token in _of_last_list(tokens) if _DIGIT.match(token.text) and token.likeliest]
    if not places or [_digit(token.text) for token in places] != [f"{rating:g}" for rating in written]:
        return None
    try:
        return [expected(_as_digits(token.likeliest)) for token in places]
    except ScoringError:
        return None


def _of_last_list(tokens: Sequence[Token]) -> Iterator[Token]:
    """Return the tokens from the last opening bracket on: a judge may have thought before it."""
    opening = max((place for place, token in enumerate(tokens) if "[" in token.text), default=len(tokens))
    return iter(tokens[opening:])


def _as_digits(likeliest: Mapping[str, float]) -> dict[str, float]:
    masses: dict[str, float] = {}
    for token, likelihood in likeliest.items():
        masses[_digit(token)] = masses.get(_digit(token), 0.0) + likelihood
    return masses


def _digit(token: str) -> str:
    found = _DIGIT.match(token)
    return found[1] if found else token
