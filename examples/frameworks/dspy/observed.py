"""A decorated DSPy program, without another instrumentation.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/dspy/observed.py
"""

from __future__ import annotations

import dspy
from departures import search

import germane

germane.start(service="dspy-example")
retrieve = germane.retrieval(search)
dspy.configure(lm=dspy.LM("openai/gpt-4.1-mini", cache=False))


class Departures(dspy.Module):
    """Answers questions from the timetable."""

    def __init__(self) -> None:
        super().__init__()
        self.respond = dspy.Predict("context: list[str], question: str -> answer: str")

    def forward(self, question: str) -> dspy.Prediction:
        """Search, and answer from the documents."""
        return self.respond(context=retrieve(question), question=question)


program = Departures()


@germane.observe
def ask(question: str) -> str:
    """Answer a question from the timetable."""
    return str(program(question=question).answer)


if __name__ == "__main__":
    print(ask("From which platform do trains to Lyon leave?"))
