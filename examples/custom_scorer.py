"""Two custom scorers, enabled by name in the settings. Run: python examples/custom_scorer.py

The example needs no judge. To use these scorers in a worker process, set imports = ["custom_scorer"].
"""

from __future__ import annotations

import germane

FILLER = ("let me know", "hope this helps", "anything else")


@germane.scorer(requires={"answer"})
def brevity(exchange: germane.Exchange) -> float:
    """Return 1 for an answer of up to 20 words, and less for a longer answer."""
    return min(1.0, 20 / len((exchange.answer or "").split()))


@germane.scorer(name="no_small_talk", requires={"answer"}, version="2")
async def without_small_talk(exchange: germane.Exchange) -> germane.Score:
    """Return 0 for an answer with a filler phrase, and name the phrase."""
    phrases = [phrase for phrase in FILLER if phrase in (exchange.answer or "").lower()]
    explanation = f"It says {phrases[0]!r}." if phrases else None
    return germane.Score(value=0.0 if phrases else 1.0, explanation=explanation)


@germane.observe
def ask(question: str) -> str:
    """Return a wordy answer."""
    return f"Shoes can be returned within thirty days. {question} I hope this helps!"


def main() -> None:
    """Ask two questions and print the scores of the answers."""
    germane.start(service="custom-example", scorers=["brevity", "no_small_talk"], poll_interval=0.2)
    ask("Can I return these shoes?")
    ask("Can I return these shoes if I have worn them once on a rainy day and no longer have the box?")
    germane.stop(drain_timeout=60)  # only scripts need this: a server scores while it runs

    store = germane.Store()
    for name in ("brevity", "no_small_talk"):
        for scored in store.answers.worst(scorer=name):
            print(f"{name} {scored.score.value:.2f} {scored.score.explanation or ''}".strip())
    store.close()


if __name__ == "__main__":
    main()
