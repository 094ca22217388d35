"""Small cases from the literature, paraphrased. Each has two rows, and the better row must rank higher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labelled.rows import Row

EINSTEIN = (
    "In 1905 Albert Einstein, a clerk at the patent office in Bern, published four papers. They explained the "
    "photoelectric effect and Brownian motion, and introduced special relativity, and that mass is energy."
)
RELEVANCY = ("answer_relevancy", "direct_relevancy", "guarded_relevancy")


@dataclass(frozen=True)
class Example:
    """One case and the scorers it applies to."""

    title: str
    question: str
    better: str
    worse: str
    scorers: Sequence[str]
    contexts: Sequence[str] = ()
    poor_contexts: Sequence[str] = ()
    """Contexts of the worse row. If given, the two rows differ in their contexts instead of their answers."""

    @property
    def rows(self) -> tuple[Row, Row]:
        """The better row and the worse row."""
        return self._row("better", self.better, self.contexts), self._row(
            "worse", self.worse, self.poor_contexts or self.contexts
        )

    def _row(self, kind: str, answer: str, contexts: Sequence[str]) -> Row:
        name = f"example-{self.title}"
        label = 1.0 if kind == "better" else 0.0
        return Row(f"{name}-{kind}", self.question, answer, tuple(contexts), label, kind, "examples", name, "examples")


EXAMPLES = (
    Example(
        "France: location and capital",
        "Where is France, and what is its capital?",
        "France lies in western Europe, and its capital is Paris.",
        "France lies in western Europe.",
        (*RELEVANCY, "question_coverage", "intent_match", "combined_relevancy"),
    ),
    Example(
        "Eiffel Tower: built, not height",
        "When was the Eiffel Tower built?",
        "The Eiffel Tower was built between 1887 and 1889.",
        "The Eiffel Tower is 330 metres tall and stands in Paris.",
        (*RELEVANCY, "intent_match", "combined_relevancy"),
    ),
    Example(
        "AKS: its benefits",
        "What are the benefits of Azure Kubernetes Service?",
        "Azure Kubernetes Service runs the control plane for you, so that there is less to operate; it scales nodes "
        "with the load, applies upgrades and security patches, and works with the monitoring and identity services of "
        "Azure.",
        "Kubernetes was released by Google in 2014 and is written in Go. Its logo shows the wheel of a ship.",
        (*RELEVANCY, "question_coverage", "intent_match", "combined_relevancy"),
    ),
    Example(
        "Python's creation: good and poor contexts",
        "Who created Python, and when was it first released?",
        "",
        "",
        ("context_relevance", "context_similarity"),
        (
            "Python was created by Guido van Rossum, who began it at CWI in the Netherlands in the late 1980s.",
            "The first release of Python was published in February 1991.",
        ),
        (
            "Pythons are large snakes that live in Africa, Asia and Australia and kill their prey by squeezing it.",
            "Java is a programming language that runs on a virtual machine.",
        ),
    ),
    Example(
        "Einstein in 1905: without and with an invented Nobel Prize",
        "What did Albert Einstein do in 1905?",
        "In 1905 Albert Einstein published four papers.",
        "In 1905 Albert Einstein published four papers. He won the Nobel Prize in the same year.",
        ("faithfulness", "context_coverage"),
        (EINSTEIN,),
    ),
    Example(
        "Who invented Python: Larry Wall is unfaithful",
        "Who invented Python?",
        "Python was invented by Guido van Rossum.",
        "Python was invented by Larry Wall.",
        ("faithfulness", "context_coverage", "answer_quality"),
        ("Python is a programming language. Guido van Rossum invented it and led its development until 2018.",),
    ),
    Example(
        "Who invented Python: Larry Wall is still relevant",
        "Who invented Python?",
        "Python was invented by Larry Wall.",
        "Python code is indented by four spaces.",
        (*RELEVANCY, "intent_match"),
    ),
    Example(
        "Machine learning: what it is",
        "What is machine learning?",
        "Machine learning is the branch of artificial intelligence in which programs learn from data how to do a task, "
        "instead of being told every step.",
        "Many companies have opened offices for computer scientists in recent years.",
        (*RELEVANCY, "question_coverage", "intent_match", "combined_relevancy"),
    ),
)
