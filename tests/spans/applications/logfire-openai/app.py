"""A call of the OpenAI SDK that Logfire traces."""

from __future__ import annotations

import logfire
from departures import PROMPT, search
from openai import OpenAI
from tracing import export_traces

export_traces()
logfire.configure(send_to_logfire=False, console=False)
logfire.instrument_openai()
client = OpenAI()


def ask(question: str) -> str:
    """Answer a question from the timetable."""
    messages = [
        {"role": "system", "content": PROMPT.format(context="\n".join(search(question)))},
        {"role": "user", "content": question},
    ]
    reply = client.chat.completions.create(model="gpt-5-mini", messages=messages)
    return reply.choices[0].message.content or ""
