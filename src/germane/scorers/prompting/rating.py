"""A judge's rating from 1 to 5: the expected value over its likeliest first tokens, else the digit that it wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from germane.errors import ScoringError
from germane.score import Reason
from germane.scorers.base.json_reply import Unreadable, as_number, json_values, without_thinking
from germane.scorers.base.protocols import Judge, Message, Reply, Token
from germane.scorers.prompting.judge_session import TOKENS, Inquiry
from germane.scorers.prompting.template import Prompt

Rated = Literal["expected", "parsed"]

LEAST, GREATEST = 1, 5
TOP_TOKENS = 20
LEAST_MASS = 0.5
"""Digits that hold less of the probability than this are no rating."""
WORDS = {"not at all": 1.0, "barely": 2.0, "partly": 3.0, "mostly": 4.0, "fully": 5.0}
THINKING = "<"
"""How a judge begins that writes down its thoughts first; no rating begins so."""
_SAYS_NOTHING = (Reason.UNPARSABLE, Reason.JUDGE_REFUSED)
"""How servers put it that a judge is still thinking after one token."""
AGAIN = Message("user", f"That was not a rating. Reply with one digit from {LEAST} to {GREATEST}, nothing else.")
_DIGITS = tuple(str(digit) for digit in range(LEAST, GREATEST + 1))
_OF_FIVE = re.compile(rf"\s*(?:/|\bout of\b|\bof\b)\s*{GREATEST}\b")
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?")
_EDGES = " \t\r\n*_`\"'.!#:="


@dataclass(frozen=True)
class Rating:
    """How a judge rated."""

    points: float
    """From 1 to 5."""
    rated: Rated
    digits: Mapping[str, float] = field(default_factory=dict)
    """How likely each digit was, 0 to 1, as the server told; none for a rating that was parsed."""

    @property
    def value(self) -> float:
        """The points on a scale from 0 to 1."""
        return (self.points - LEAST) / (GREATEST - LEAST)

    def details(self) -> dict[str, Any]:
        """Return what of it goes into a score's details."""
        told = {"digits": {digit: round(mass, 6) for digit, mass in self.digits.items()}} if self.digits else {}
        return {"rating": self.points, "rated": self.rated, **told}

    def __str__(self) -> str:
        how = "expected over its digits" if self.rated == "expected" else "as it wrote"
        return f"{self.points:.1f} of {GREATEST}, {how}"


class Rater:
    """Asks a judge for ratings, and remembers whether its server tells how likely tokens are."""

    def __init__(self, judge: Judge, prompt: Prompt, *, logprobs: bool = True) -> None:
        self.judge = judge
        self.prompt = prompt
        self.logprobs = logprobs
        self._tells: bool | None = None if logprobs else False
        self._last: Rated | None = None

    def parameters(self) -> dict[str, object]:
        """Return what of it decides the ratings, besides the prompt."""
        return {"logprobs": self.logprobs, "top_tokens": TOP_TOKENS, "least_mass": LEAST_MASS, "words": WORDS}

    async def rated(self) -> Rated:
        """Return how this judge rated last; where nobody knows yet, a tiny request tells.

        Raises:
            ScoringError: the judge gave no reply.
        """
        if self._last is not None:
            return self._last
        if self._tells is None:
            await self._first_token(Inquiry(self.judge), [Message("user", f"Reply with: {GREATEST}")])
        return "expected" if self._tells else "parsed"

    async def rate(self, inquiry: Inquiry, values: Mapping[str, str]) -> Rating:
        """Return the judge's rating of what the values fill the prompt with.

        One request of one token where the server tells probabilities; else one that may think and write, and one more
        where that cannot be read.

        Raises:
            ScoringError: the judge gave no reply, or none that is a rating: ``unparsable`` or ``out_of_range``.
        """
        rating = await self._rate(inquiry, self.prompt.fill(**values))
        self._last = rating.rated
        return rating

    async def _rate(self, inquiry: Inquiry, messages: list[Message]) -> Rating:
        if self._tells is not False:
            reply = await self._first_token(inquiry, messages)
            if self._tells and reply is not None and reply.first_token:
                return expected(reply.first_token)
            with suppress(Unreadable):
                return Rating(parsed(reply.texts[0] if reply else ""), "parsed")
        points = await self._parsed(inquiry, messages)
        self._tells = bool(self._tells)  # a judge that says nothing within a token is not asked for one again
        return Rating(points, "parsed")

    async def _first_token(self, inquiry: Inquiry, messages: list[Message]) -> Reply | None:
        """Return a reply of one token; None from a judge of which nobody knows yet that it says anything within one."""
        try:
            reply = await inquiry.ask(messages, temperature=0.0, max_tokens=1, top_tokens=TOP_TOKENS)
        except ScoringError as error:
            if self._tells or error.reason not in _SAYS_NOTHING:
                raise
            return None
        if self._tells is None:
            self._tells = bool(reply.first_token) and not reply.texts[0].lstrip().startswith(THINKING)
        return reply

    async def _parsed(self, inquiry: Inquiry, messages: list[Message]) -> float:
        reply = await inquiry.ask(messages, temperature=0.0, max_tokens=TOKENS)
        try:
            return parsed(reply.texts[0])
        except Unreadable:
            said = Message("assistant", reply.texts[0][:2_000])
            reply = await inquiry.ask([*messages, said, AGAIN], temperature=0.0, max_tokens=TOKENS)
            return parsed(reply.texts[0])


def expected(first_token: Mapping[str, float]) -> Rating:
    """Return the mean of the digits 1 to 5, each weighted by how likely it was: sum(d * p(d)) / sum(p(d)).

    Tokens that are the same digit but for white space count together.

    Raises:
        ScoringError: the digits hold less than half of the probability; ``unparsable``.
    """
    digits: dict[str, float] = {}
    for token, likelihood in first_token.items():
        if (digit := token.strip()) in _DIGITS:
            digits[digit] = digits.get(digit, 0.0) + likelihood
    mass = sum(digits.values())
    if mass < LEAST_MASS:
        likeliest = max(first_token, key=lambda token: first_token[token])
        raise ScoringError(
            Reason.UNPARSABLE, f"digits hold {mass:.2f} of the probability; the likeliest token is {likeliest!r:.40}"
        )
    points = sum(int(digit) * likelihood for digit, likelihood in digits.items()) / mass
    return Rating(points, "expected", dict(sorted(digits.items())))


def parsed(reply: str) -> float:
    """Return the rating in a judge's text: a digit, ``4/5``, a word, JSON, or the only number in a sentence.

    Raises:
        Unreadable: there is none, or more than one (``unparsable``); or it is not from 1 to 5 (``out_of_range``).
    """
    text = without_thinking(reply)
    for value in json_values(text):
        if isinstance(value, dict) and value:
            return as_number(value.get("rating", next(iter(value.values()))), LEAST, GREATEST)
    bare = text.strip(_EDGES)
    if bare.lower() in WORDS:
        return WORDS[bare.lower()]
    with suppress(Unreadable):
        return as_number(bare, LEAST, GREATEST)
    numbers = set(_NUMBER.findall(_OF_FIVE.sub("", bare)))
    if len(numbers) != 1:
        raise Unreadable(f"{bare!r:.80} is not one rating")
    return as_number(numbers.pop(), LEAST, GREATEST)


_DIGIT = re.compile(rf"\A[\s\[,]*([{LEAST}-{GREATEST}])[\s\],}}]*\Z")
"""A rating that is a token of its own, but for what surrounds the items of a list."""


def expected_ratings(tokens: Sequence[Token], written: Sequence[float]) -> list[Rating] | None:
    """Return one rating per digit of the list that the tokens end with; see :func:`germane.scorers.prompting.rating.expected`.

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
