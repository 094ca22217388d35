"""A call of the OpenAI SDK that OpenLLMetry traces."""

from __future__ import annotations

from departures import PROMPT, search
from openai import OpenAI
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from tracing import export_traces

export_traces()
OpenAIInstrumentor().instrument()
client = OpenAI()


def ask(question: str) -> str:
    """Answer a question from the timetable."""
    messages = [
        {"role": "system", "content": PROMPT.format(context="\n".join(search(question)))},
        {"role": "user", "content": question},
    ]
    reply = client.chat.completions.create(model="gpt-5-mini", messages=messages)
    return reply.choices[0].message.content or ""
