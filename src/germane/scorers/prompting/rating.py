"""Ratings from 1 to 5: the expected value over the judge's most likely digits, otherwise the digit that it wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from germane.errors import ScoringError
from germane.exchange import Message
from germane.score import UnscoredReason
from germane.scorers.base.protocols import MAX_REPLY_TOKENS, Judge, Reply, Token
from germane.scorers.base.reply_parser import UnreadableReply, find_json_values, parse_number, strip_thinking
from germane.scorers.prompting.judge_scorer import JudgeSession
from germane.scorers.prompting.prompt import Prompt

MIN_RATING, MAX_RATING = 1, 5
TOP_TOKENS = 20
MIN_DIGIT_PROBABILITY = 0.5
"""If the total probability of the digits is lower, the reply is not a rating."""
RATING_WORDS = {"not at all": 1.0, "barely": 2.0, "partly": 3.0, "mostly": 4.0, "fully": 5.0}
THINKING_PREFIX = "<"
"""First character of a reply that starts with a reasoning block. No rating starts with it."""
RATING_RETRY_MESSAGE = Message(
    "user", f"That was not a rating. Reply with one digit from {MIN_RATING} to {MAX_RATING}, nothing else."
)
_STILL_THINKING_REASONS = (UnscoredReason.UNPARSABLE, UnscoredReason.JUDGE_REFUSED)
"""Reasons for failed scores if a judge is still reasoning after one token."""
_DIGITS = tuple(str(digit) for digit in range(MIN_RATING, MAX_RATING + 1))
_OF_FIVE = re.compile(rf"\s*(?:/|\bout of\b|\bof\b)\s*{MAX_RATING}\b")
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?")
_EDGES = " \t\r\n*_`\"'.!#:="
_DIGIT_TOKEN = re.compile(rf"\A[\s\[,]*([{MIN_RATING}-{MAX_RATING}])[\s\],}}]*\Z")
"""A token that is one rating, apart from the punctuation of a list."""

RatingMethod = Literal["expected", "parsed"]


@dataclass(frozen=True)
class Rating:
    """A judge's rating."""

    points: float
    """From 1 to 5."""
    method: RatingMethod
    digits: Mapping[str, float] = field(default_factory=dict)
    """Probability of each digit, 0 to 1; empty for parsed ratings."""

    def __str__(self) -> str:
        how = "expected value over digit probabilities" if self.method == "expected" else "as written"
        return f"{self.points:.1f} of {MAX_RATING} ({how})"

    @property
    def value(self) -> float:
        """The points on a scale from 0 to 1."""
        return (self.points - MIN_RATING) / (MAX_RATING - MIN_RATING)

    def details(self) -> dict[str, Any]:
        """Return the rating for a score's details."""
        digits = {digit: round(probability, 6) for digit, probability in self.digits.items()}
        return {"rating": self.points, "rated": self.method, **({"digits": digits} if digits else {})}


class Rater:
    """Asks a judge for ratings, and remembers whether its server supports logprobs."""

    def __init__(self, judge: Judge, prompt: Prompt, *, logprobs: bool = True) -> None:
        self.judge = judge
        self.prompt = prompt
        self.logprobs = logprobs
        self._supports_logprobs: bool | None = None if logprobs else False
        self._last_method: RatingMethod | None = None

    def parameters(self) -> dict[str, object]:
        """Return the parameters that determine the ratings in addition to the prompt, for the fingerprint."""
        return {
            "logprobs": self.logprobs,
            "top_tokens": TOP_TOKENS,
            "least_mass": MIN_DIGIT_PROBABILITY,
            "words": RATING_WORDS,
        }

    async def rating_method(self) -> RatingMethod:
        """Return the method of the last rating, sending a minimal request if there was none.

        Raises:
            ScoringError: the judge did not reply.
        """
        if self._last_method is not None:
            return self._last_method
        if self._supports_logprobs is None:
            await self._ask_first_token(JudgeSession(self.judge), [Message("user", f"Reply with: {MAX_RATING}")])
        return "expected" if self._supports_logprobs else "parsed"

    async def rate(self, session: JudgeSession, values: Mapping[str, str]) -> Rating:
        """Return the judge's rating for the prompt filled with these values.

        Sends one request of one token if the server supports logprobs, otherwise one with room for reasoning, and one
        retry if its reply is unreadable.

        Raises:
            ScoringError: the judge did not reply, or its reply is not a rating: ``unparsable`` or ``out_of_range``.
        """
        rating = await self._rate(session, self.prompt.fill(**values))
        self._last_method = rating.method
        return rating

    async def _rate(self, session: JudgeSession, messages: list[Message]) -> Rating:
        if self._supports_logprobs is not False:
            reply = await self._ask_first_token(session, messages)
            if self._supports_logprobs and reply is not None and reply.first_token:
                return expected_rating(reply.first_token)
            with suppress(UnreadableReply):
                return Rating(parse_rating(reply.texts[0] if reply else ""), "parsed")
        reply = await session.ask(messages, temperature=0.0, max_tokens=MAX_REPLY_TOKENS)
        try:
            points = parse_rating(reply.texts[0])
        except UnreadableReply:
            reply = await session.ask_again(
                messages, reply, RATING_RETRY_MESSAGE, temperature=0.0, max_tokens=MAX_REPLY_TOKENS
            )
            points = parse_rating(reply.texts[0])
        # If a single token was not enough for this judge, do not try single-token requests again.
        self._supports_logprobs = bool(self._supports_logprobs)
        return Rating(points, "parsed")

    async def _ask_first_token(self, session: JudgeSession, messages: list[Message]) -> Reply | None:
        """Return a reply of one token; None if support is unknown and the judge did not reply within one token."""
        try:
            reply = await session.ask(messages, temperature=0.0, max_tokens=1, top_tokens=TOP_TOKENS)
        except ScoringError as error:
            if self._supports_logprobs or error.reason not in _STILL_THINKING_REASONS:
                raise
            return None
        if self._supports_logprobs is None:
            is_thinking = reply.texts[0].lstrip().startswith(THINKING_PREFIX)
            self._supports_logprobs = bool(reply.first_token) and not is_thinking
        return reply


def expected_rating(first_token: Mapping[str, float]) -> Rating:
    """Return the expected value of the digits 1 to 5: sum(d * p(d)) / sum(p(d)).

    The probabilities of tokens that differ only in white space are added.

    Raises:
        ScoringError: the digits have a total probability below .5; ``unparsable``.
    """
    digits: dict[str, float] = {}
    for token, probability in first_token.items():
        if (digit := token.strip()) in _DIGITS:
            digits[digit] = digits.get(digit, 0.0) + probability
    total = sum(digits.values())
    if total < MIN_DIGIT_PROBABILITY:
        most_likely = max(first_token, key=lambda token: first_token[token])
        raise ScoringError(
            UnscoredReason.UNPARSABLE,
            f"the digits have a total probability of {total:.2f}; the most likely token is {most_likely!r:.40}",
        )
    points = sum(int(digit) * probability for digit, probability in digits.items()) / total
    return Rating(points, "expected", dict(sorted(digits.items())))


def expected_ratings(tokens: Sequence[Token], written: Sequence[float]) -> list[Rating] | None:
    """Return one expected rating per digit of the list at the end of the tokens; see :func:`expected_rating`.

    Returns None if the tokens do not determine the ratings: there are no tokens, their digits differ from the
    ``written`` ones, or at one position the digits have a total probability below .5.
    """
    # The list starts at the last bracket: the judge may have reasoned before it.
    start = max((index for index, token in enumerate(tokens) if "[" in token.text), default=len(tokens))
    positions = [token for token in tokens[start:] if _DIGIT_TOKEN.match(token.text) and token.alternatives]
    if not positions or [_as_digit(token.text) for token in positions] != [f"{rating:g}" for rating in written]:
        return None
    ratings = []
    for position in positions:
        probabilities: dict[str, float] = {}
        for token, probability in position.alternatives.items():
            digit = _as_digit(token)
            probabilities[digit] = probabilities.get(digit, 0.0) + probability
        try:
            ratings.append(expected_rating(probabilities))
        except ScoringError:
            return None
    return ratings


def parse_rating(reply: str) -> float:
    """Return the rating in a judge's text: a digit, ``4/5``, a word, JSON, or the only number in a sentence.

    Raises:
        UnreadableReply: there is no rating or more than one (``unparsable``), or it is not from 1 to 5
            (``out_of_range``).
    """
    text = strip_thinking(reply)
    for value in find_json_values(text):
        if isinstance(value, dict) and value:
            return parse_number(value.get("rating", next(iter(value.values()))), MIN_RATING, MAX_RATING)
    bare = text.strip(_EDGES)
    if bare.lower() in RATING_WORDS:
        return RATING_WORDS[bare.lower()]
    with suppress(UnreadableReply):
        return parse_number(bare, MIN_RATING, MAX_RATING)
    numbers = set(_NUMBER.findall(_OF_FIVE.sub("", bare)))
    if len(numbers) != 1:
        raise UnreadableReply(f"{bare!r:.80} is not one rating")
    return parse_number(numbers.pop(), MIN_RATING, MAX_RATING)


def _as_digit(token: str) -> str:
    match = _DIGIT_TOKEN.match(token)
    return match[1] if match else token
