"""Ratings from 1 to 5: the expected value over the judge's most likely digits, or else the digit that it wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from germane.errors import ScoringError
from germane.exchange import Message
from germane.score import UnscoredReason
from germane.scorers.base.phrases import any_of, words_in
from germane.scorers.base.protocols import MAX_REPLY_TOKENS, MAX_TOTAL_PROBABILITY, Judge, Reply, Token
from germane.scorers.base.reply_parser import (
    UnreadableReply,
    parse_json_object,
    parse_number,
    require_introduction,
    strip_thinking,
    without_trailing_commas,
)
from germane.scorers.prompting.judge_scorer import JudgeSession, require_judgment
from germane.scorers.prompting.prompt import Prompt

MIN_RATING, MAX_RATING = 1, 5
TOP_TOKENS = 20
MIN_DIGIT_PROBABILITY = 0.5
"""If the total probability of the digits is not higher than this, the reply is not a rating."""
RATING_WORDS = {"not at all": 1.0, "barely": 2.0, "partly": 3.0, "mostly": 4.0, "fully": 5.0}
THINKING_PREFIX = "<"
"""The first character of a reply that starts with a reasoning block. No rating starts with it."""
RATING_RETRY_MESSAGE = Message(
    "user", f"That was not a rating. Reply with one digit from {MIN_RATING} to {MAX_RATING}, nothing else."
)
_STILL_THINKING_REASONS = (UnscoredReason.UNPARSABLE, UnscoredReason.JUDGE_REFUSED)
"""The reasons a request fails with if the judge is still reasoning after one token."""
_MAX_ROUNDING = 0.01
"""Maximum difference between probabilities that are equal apart from rounding."""
_DIGITS = tuple(str(digit) for digit in range(MIN_RATING, MAX_RATING + 1))
_FENCE = re.compile(r"```[a-z]*\s+(.*?)\s*```", re.DOTALL | re.IGNORECASE)
_SCALE = r"(?: ?\((?:1|one) ?(?:[-\u2013\u2014/]|to|bis|\u00e0|a|until) ?(?:5|five)\))?"
_LABEL = re.compile(
    r"\A(?:(?:the|my|your|final|overall|relevance|relevancy|numeric|answer|i) )*"
    rf"(?:{any_of('rating label')})"
    rf"{_SCALE}(?: (?:is|it|this|would be|of))*[\s*_`]*(?:[:=\uff1a\u2013\u2014\u2192-]|\Z|(?=\s))\s*",
    re.IGNORECASE,
)
"""A label before the rating, such as "Rating:", "My final score is" or "Bewertung:"."""
_GIVEN = re.compile(
    r"\A(?:i(?:'d| would)? (?:rate|give|score) (?:(?:this|that|the|it|answer|response) )+(?:an? )?"
    r"|(?:this|the) (?:answer|response) (?:deserves|gets|receives|is rated)(?: an?)?(?: (?:rating|score) of)? )",
    re.IGNORECASE,
)
"""The beginning of a sentence that gives the rating, such as "I would rate this answer"."""
_BOXED = re.compile(r"\A\$*\\boxed\{([^{}]*)\}\$*\Z")
_PREAMBLE = re.compile(r"\A\W*(?:sure\W+)?here is (?=(?:the|my|your) )", re.IGNORECASE)
_TAG = re.compile(r"\s*<(rating|score|answer|output|final|result)>([^<>]*)</\1>\s*", re.IGNORECASE)
_NUMBER = re.compile(
    rf"\A([-+]?\d+(?:[.,]\d+)?|zero|one|two|three|four|five|six|seven|eight|nine|ten)[\s*_`]*"
    rf"(?:\(?(?:/|out of|of|von|sur|de|su|van|\u0438\u0437)\s*{MAX_RATING}\b\)?)?[\s*_`]*"
    r"(?:points?|stars?|punkte?|puntos?|punti|pontos?|punten|\u0431\u0430\u043b\u043b(?:\u0430|\u043e\u0432)?|\u5206|\u70b9|\u9ede|\uc810|\u2b50|\u2605)?"
    rf"[\s*_`]*(?:[-=:,(\u2013\u2014]+\s*({'|'.join(RATING_WORDS)})(?: relevant)?\)?)?[\s*_`.!]*\Z",
    re.IGNORECASE,
)
"""A number, optionally followed by "of 5", by "points", or by a verdict."""
_BLANKS = re.compile(r"\s{3,}")
_REASON_LABEL = re.compile(r"\W{0,4}[^\W\d_][^\n:.]{0,30}:")
_MAX_RATING_LINE = 60
_MAX_WORD_DIFFERENCE = 0.5
"""Maximum difference between a number and the rating that its verdict means, as in "3.5 (mostly)"."""
_RATING_MEMBERS = ("rating", "score")
_OTHER_MEMBERS = words_in("members next to a rating")
"""Words in the names that other members of a rating may have."""
_SCALE_WORDS = frozenset({"scale", "max", "maximum", "min", "minimum", "range", "outof", "best", "worst", "limit"})
"""Words in the names of members that describe the scale."""
_NAME_WORD = re.compile(r"[a-z]+")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_EDGES = " \t\r\n*_`\"'.!#:()"
"""Characters around a rating that have no meaning. Comparison signs are not included: "< 4" is not 4."""
_DIGIT_TOKEN = re.compile(rf"\A[\s\[,]*([{MIN_RATING}-{MAX_RATING}])[\s\],}}]*\Z")
"""A token that consists of one rating, apart from the punctuation of a list."""

RatingMethod = Literal["expected", "parsed"]


@dataclass(frozen=True)
class Rating:
    """A judge's rating."""

    points: float
    """A number from 1 to 5."""
    method: RatingMethod
    digits: Mapping[str, float] = field(default_factory=dict)
    """The probability of each digit, from 0 to 1; empty for parsed ratings."""

    def __str__(self) -> str:
        how = "expected value over digit probabilities" if self.method == "expected" else "as written"
        return f"{self.points:.1f} of {MAX_RATING} ({how})"

    @property
    def value(self) -> float:
        """The rating, scaled to [0, 1]."""
        return (self.points - MIN_RATING) / (MAX_RATING - MIN_RATING)

    def details(self) -> dict[str, Any]:
        """Return the rating as a dict that can be stored in the score's details."""
        digits = {digit: round(probability, 6) for digit, probability in self.digits.items()}
        return {"rating": self.points, "rated": self.method, **({"digits": digits} if digits else {})}


class Rater:
    """Requests ratings from a judge, and remembers whether the judge's server supports logprobs."""

    def __init__(self, judge: Judge, prompt: Prompt, *, logprobs: bool = True) -> None:
        self.judge = judge
        self.prompt = prompt
        self.logprobs = logprobs
        self._supports_logprobs: bool | None = None if logprobs else False
        self._last_method: RatingMethod | None = None

    def parameters(self) -> dict[str, object]:
        """Return the parameters, other than the prompt, that affect ratings. They become part of the fingerprint."""
        return {
            "logprobs": self.logprobs,
            "top_tokens": TOP_TOKENS,
            "least_mass": MIN_DIGIT_PROBABILITY,
            "words": RATING_WORDS,
        }

    async def rating_method(self) -> RatingMethod:
        """Return the method of the last rating. If there has been no rating, send a minimal request to find out."""
        if self._last_method is not None:
            return self._last_method
        if self._supports_logprobs is None:
            await self._ask_first_token(JudgeSession(self.judge), [Message("user", f"Reply with: {MAX_RATING}")])
        return "expected" if self._supports_logprobs else "parsed"

    async def rate(self, session: JudgeSession, values: Mapping[str, str]) -> Rating:
        """Return the judge's rating for the prompt filled with these values.

        If the server supports logprobs, this sends one request for one token. Otherwise, it sends a request that allows
        for reasoning, and retries once if the reply is unreadable.

        Raises:
            ScoringError: the judge did not reply, or its reply is not a rating: ``unparsable`` or ``out_of_range``.
        """
        rating = await self._rate(session, self.prompt.fill(**values), values)
        self._last_method = rating.method
        return rating

    async def _rate(self, session: JudgeSession, messages: list[Message], values: Mapping[str, str]) -> Rating:
        if self._supports_logprobs is not False:
            reply = await self._ask_first_token(session, messages)
            if self._supports_logprobs and reply is not None and reply.first_token:
                expected = expected_rating(reply.first_token)
                digits, written = expected.digits, reply.texts[0].strip()
                # Otherwise, the probabilities do not belong to the reply.
                if written in digits and digits[written] >= max(digits.values()) - _MAX_ROUNDING:
                    return expected
            # A token truncated by the limit may begin a sentence: "4 requests remain in this minute."
            if reply is not None and 0 not in reply.cut_off:
                with suppress(UnreadableReply):
                    return Rating(parse_rating(reply.texts[0], values), "parsed")
        reply = await session.ask(messages, temperature=0.0, max_tokens=MAX_REPLY_TOKENS)
        try:
            points = parse_rating(reply.texts[0], values)
        except UnreadableReply:
            reply = await session.ask_again(
                messages, reply, RATING_RETRY_MESSAGE, temperature=0.0, max_tokens=MAX_REPLY_TOKENS
            )
            points = parse_rating(reply.texts[0], values)
        # If a single token was not enough for this judge, do not try single-token requests again.
        self._supports_logprobs = bool(self._supports_logprobs)
        return Rating(points, "parsed")

    async def _ask_first_token(self, session: JudgeSession, messages: list[Message]) -> Reply | None:
        """Request one token. Return None if logprobs support is unknown and one token was not enough."""
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
    """Return the expected value over the digits 1 to 5: sum(d * p(d)) / sum(p(d)).

    The probabilities of tokens that differ only in whitespace are added.

    Raises:
        ScoringError: the total probability of the digits is 0.5 or less, or more than 1; the reason is ``unparsable``.
    """
    digits: dict[str, float] = {}
    for token, probability in first_token.items():
        if (digit := token.strip()) in _DIGITS:
            digits[digit] = digits.get(digit, 0.0) + probability
    total = sum(digits.values())
    if not MIN_DIGIT_PROBABILITY < total <= MAX_TOTAL_PROBABILITY:
        most_likely = max(first_token, key=lambda token: first_token[token])
        raise ScoringError(
            UnscoredReason.UNPARSABLE,
            f"the digits have a total probability of {total:.2f}; the most likely token is {most_likely!r:.40}",
        )
    points = sum(int(digit) * probability for digit, probability in digits.items()) / total
    return Rating(points, "expected", dict(sorted(digits.items())))


def expected_ratings(tokens: Sequence[Token], written: Sequence[float]) -> list[Rating] | None:
    """Return one expected rating per digit in the list at the end of the tokens; see :func:`expected_rating`.

    Return None if the tokens do not determine the ratings. This is the case if there are no tokens, if their digits
    differ from ``written``, or if the total probability of the digits is 0.5 or less at any position.
    """
    # The list starts at the last bracket, because the judge may have reasoned before it.
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


def parse_rating(reply: str, shown: Mapping[str, str] | None = None) -> float:
    """Return the rating that a judge's text consists of. ``shown`` contains the texts in the prompt.

    The rating is a number (``4``, ``4/5``, ``four``), a verdict (``mostly``), both (``4 = mostly``), or a JSON object
    with the field ``rating``. Whitespace, Markdown and a label such as ``Rating:`` are allowed around it. A digit in a
    sentence is not a rating: "Rate limited: try again in 5 seconds."

    Raises:
        UnreadableReply: the text is not a rating (``unparsable``), or the rating is not from 1 to 5 (``out_of_range``).
    """
    # Long runs of blanks would make the patterns slow.
    text = _BLANKS.sub(lambda blanks: "\n\n" if "\n" in blanks[0] else " ", strip_thinking(reply))
    text = without_trailing_commas(text)
    if fenced := _FENCE.search(text):
        require_introduction(text, text[: fenced.start()], text[fenced.end() :])
        text = fenced[1]
    if boxed := _BOXED.match(text):
        text = boxed[1]
    if "{" in text:
        return _parse_rating_object(text, shown or {})
    text = _PREAMBLE.sub("", text, count=1)
    if tagged := _TAG.fullmatch(text):
        text = tagged[2]
    text = _without_reason(text, shown or {})
    bare = _GIVEN.sub("", _LABEL.sub("", text.strip(_EDGES), count=1), count=1).strip(_EDGES)
    verdict = bare.lower().removesuffix(" relevant")
    if verdict in RATING_WORDS:
        return RATING_WORDS[verdict]
    match = _NUMBER.match(bare)
    if match is None:
        raise UnreadableReply(f"{bare!r:.80} is not a rating")
    points = parse_number(match[1], MIN_RATING, MAX_RATING)
    if match[2] and abs(RATING_WORDS[match[2].lower()] - points) > _MAX_WORD_DIFFERENCE:
        raise UnreadableReply(f"the number and the verdict in {bare!r:.80} contradict each other")
    return points


def _without_reason(text: str, shown: Mapping[str, str]) -> str:
    """Remove a reason from a rating on a line of its own. The reason follows a blank line or begins with a label."""
    first, _, rest = text.strip().partition("\n")
    reason = rest.strip()
    is_below = rest.lstrip(" \t\r").startswith("\n") or _REASON_LABEL.match(reason) is not None
    if not (reason[:1].isalpha() and is_below) or len(first) > _MAX_RATING_LINE:
        return text
    if any(_DIGIT_TOKEN.match(line) for line in reason.splitlines()):  # another rating
        return text
    require_judgment({"reason": reason}, shown)
    return first


def _parse_rating_object(text: str, shown: Mapping[str, str]) -> float:
    members = parse_json_object(text)
    require_judgment(members, shown)
    require_scale(members)
    ratings = {
        parse_number(value, MIN_RATING, MAX_RATING)
        for name, value in members.items()
        if name.lower() in _RATING_MEMBERS
    }
    others = [name for name in members if name.lower() not in _RATING_MEMBERS]
    if len(ratings) != 1 or any(_OTHER_MEMBERS.isdisjoint(_words_of(name)) for name in others):
        raise UnreadableReply(f"{text!r:.80} is not a rating")
    return ratings.pop()


def require_scale(members: Mapping[str, Any]) -> None:
    """Raise UnreadableReply if an object states a scale other than 1 to 5: ``{"rating": 4, "max_score": 100}``."""
    for name, value in members.items():
        if name.lower() in _RATING_MEMBERS or _SCALE_WORDS.isdisjoint(words := _words_of(name)):
            continue
        limits = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", str(value))]
        expected = {MIN_RATING} if {"min", "minimum", "worst"} & set(words) else {MIN_RATING, MAX_RATING}
        if limits and not (set(limits) <= expected and (expected == {MIN_RATING} or MAX_RATING in limits)):
            raise UnreadableReply(f"the rating uses a different scale: {name} is {value!r:.40}")


def _words_of(name: str) -> list[str]:
    """Return the words in a member's name. "max_score" and "maxScore" contain two words each."""
    return _NAME_WORD.findall(_CAPITAL.sub("_", name).lower().replace("out_of", "outof"))


def _as_digit(token: str) -> str:
    match = _DIGIT_TOKEN.match(token)
    return match[1] if match else token
