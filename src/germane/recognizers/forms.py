"""The form of a model's reply: what it looks like, whatever it says and in whatever language."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import Final

from germane.language import asks, is_finished, sentences_of
from germane.recognizers.text import decode
from germane.recognizers.values import names_answer

_FENCE: Final = re.compile(r"```\w*\s*(.*?)\s*```", re.DOTALL)
_BULLET: Final = re.compile(r"^\s*(?:[*\-\u2022\u2013]|\(?\d+[.)])\s+")
_MAX_PHRASE: Final = 60
"""Maximum number of characters of a phrase. Longer lines are sentences, which have no mark at the end in Thai."""


class Form(IntEnum):
    """What a text looks like, from the least to the most like an answer for a person."""

    DATA = 0
    """JSON, or a list of questions."""
    PHRASE = 1
    """A number, or a short line without the end of a sentence, such as a title, a query or a class."""
    QUESTION = 2
    SENTENCES = 3


@lru_cache(maxsize=512)
def form_of(text: str) -> Form:
    """Return the form of a text."""
    fenced = _FENCE.fullmatch(text.strip())
    value = decode(fenced[1] if fenced else text)
    if not isinstance(value, str):
        return Form.SENTENCES if names_answer(value) else Form.DATA
    lines = [line for line in text.splitlines() if line.strip()]
    sentences = [each for line in lines for each in sentences_of(_BULLET.sub("", line))]
    if sentences and all(map(asks, sentences)):
        return Form.DATA if len(sentences) > 1 else Form.QUESTION
    is_short = len(lines) < 2 and len(text.strip()) <= _MAX_PHRASE
    return Form.PHRASE if is_short and not is_finished(text) else Form.SENTENCES
