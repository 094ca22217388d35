"""A FastAPI handler that streams its answer. The germane decorator is below the framework's.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/fastapi/observed.py, then POST a question to /ask.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from departures import PROMPT, search
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel

import germane

app = FastAPI(lifespan=germane.lifespan)
client = AsyncOpenAI()
retrieve = germane.retrieval(search)


class Body(BaseModel):
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


@app.post("/ask")
@germane.observe(question="body.question")
async def ask(body: Body) -> StreamingResponse:
    """Stream an answer from the timetable."""
    return StreamingResponse(generate(body.question), media_type="text/plain")


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=8000)
