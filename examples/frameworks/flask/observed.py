"""A Flask handler that streams its answer. The germane decorator is below the framework's.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/flask/observed.py, then POST a question to /ask.
"""

from __future__ import annotations

from collections.abc import Iterator

import flask
from departures import PROMPT, search
from openai import OpenAI

import germane

germane.start(service="flask-example")
app = flask.Flask(__name__)
client = OpenAI()
retrieve = germane.retrieval(search)


def generate(question: str) -> Iterator[str]:
    """Yield the answer word by word."""
    messages = [
        {"role": "system", "content": PROMPT.format(context="\n".join(retrieve(question)))},
        {"role": "user", "content": question},
    ]
    for chunk in client.chat.completions.create(model="gpt-5-mini", messages=messages, stream=True):
        if chunk.choices and chunk.choices[0].delta.content:
            yield chunk.choices[0].delta.content


@app.post("/ask")
@germane.observe(question=lambda: flask.request.json["question"])
def ask() -> flask.Response:
    """Stream an answer from the timetable."""
    return flask.Response(generate(flask.request.json["question"]), mimetype="text/plain")


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=8000)
