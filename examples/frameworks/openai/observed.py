"""A decorated function that streams the answer of the OpenAI SDK.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/openai/observed.py
"""

from __future__ import annotations

from collections.abc import Iterator

from departures import PROMPT, search
from openai import OpenAI

import germane

germane.start(service="openai-example")

client = OpenAI()
retrieve = germane.retrieval(search)


@germane.observe
def ask(question: str) -> Iterator[str]:
    """Answer a question from the timetable, word by word."""
    messages = [
        {"role": "system", "content": PROMPT.format(context="\n".join(retrieve(question)))},
        {"role": "user", "content": question},
    ]
    for chunk in client.chat.completions.create(model="gpt-5-mini", messages=messages, stream=True):
        if chunk.choices and chunk.choices[0].delta.content:
            yield chunk.choices[0].delta.content


if __name__ == "__main__":
    print(*ask("From which platform do trains to Lyon leave?"), sep="")
