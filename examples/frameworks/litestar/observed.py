"""A Litestar handler that streams its answer. The germane decorator is below the framework's.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/litestar/observed.py, then POST a question to /ask.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from departures import PROMPT, search
from litestar import Litestar, post
from litestar.response import Stream
from openai import AsyncOpenAI

import germane

germane.start(service="litestar-example")
client = AsyncOpenAI()
retrieve = germane.retrieval(search)


@dataclass
class Body:
    """The request body."""

    question: str


async def generate(question: str) -> AsyncIterator[str]:
    """Yield the answer word by word."""
    messages = [
        {"role": "system", "content": PROMPT.format(context="\n".join(retrieve(question)))},
        {"role": "user", "content": question},
    ]
    chunks = await client.chat.completions.create(model="gpt-5-mini", messages=messages, stream=True)
    async for chunk in chunks:
        if chunk.choices and chunk.choices[0].delta.content:
            yield chunk.choices[0].delta.content


@post("/ask")
@germane.observe(question="data.question")
async def ask(data: Body) -> Stream:
    """Stream an answer from the timetable."""
    return Stream(generate(data.question), media_type="text/plain")


app = Litestar([ask])


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=8000)
