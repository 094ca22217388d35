"""An agent of Semantic Kernel, which records the question as a log record."""

from __future__ import annotations

import logging
import os

os.environ["SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE"] = "true"

from departures import PROMPT, search
from opentelemetry.instrumentation.logging.handler import LoggingHandler
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from tracing import export_traces

export_traces()
logger = logging.getLogger("semantic_kernel")
logger.setLevel(logging.INFO)
logger.addHandler(LoggingHandler(level=logging.INFO))


async def ask(question: str) -> str:
    """Answer a question from the timetable."""
    agent = ChatCompletionAgent(
        service=OpenAIChatCompletion(ai_model_id="gpt-5-mini"),
        name="departures",
        instructions=PROMPT.format(context="\n".join(search(question))),
    )
    return str(await agent.get_response(messages=question))
