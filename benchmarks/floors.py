"""An embedder's cosine floors, measured on 72 questions about 24 topics: the source of the shipped calibrations.

Without options, the benchmark measures the embedded embedder and prints the shipped values next to the measured values.
With ``--base-url`` and ``--model``, it measures an embedder on any OpenAI-compatible server.

Run: python benchmarks/floors.py [--base-url URL --model NAME]
"""

from __future__ import annotations

import argparse
import asyncio
from datetime import UTC, datetime

from labelled.report import table
from labelled.topics import TOPICS

from germane.exchange import Exchange
from germane.scorers import Embedder, measure_cosine_pairs
from germane.scorers.calibration import DEFAULT_CALIBRATIONS
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.embedders import OpenAIEmbedder
from germane.scorers.local.minilm import MiniLM


def exchanges() -> list[Exchange]:
    """Return the questions and answers of all topics."""
    texts = [pair for topic in TOPICS.values() for pair in topic]
    return [Exchange.from_texts(question, answer) for question, answer in texts]


async def measure(embedder: Embedder) -> None:
    """Print the measured and the shipped floors."""
    now, lines = datetime.now(UTC), []
    for pairs in await measure_cosine_pairs(exchanges(), embedder):
        shipped = DEFAULT_CALIBRATIONS.get((embedder.model, pairs.scorer))
        floor = pairs.to_calibration(now).floor
        both = "none" if shipped is None else f"{shipped.floor:.2f}, {shipped.topic_floor:.2f}"
        lines.append((pairs.scorer, str(pairs.n), f"{floor:.3f}", f"{pairs.topic_floor():.3f}", both))
    print(f"{embedder.model}\n\n{table(('scorer', 'n', 'unrelated', 'same topic', 'shipped'), lines)}")


async def main() -> None:
    """Measure the chosen embedder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", help="an OpenAI-compatible server")
    parser.add_argument("--model", default="text-embedding-3-small")
    options = parser.parse_args()
    embedder = OpenAIEmbedder(options.model, ModelServer(base_url=options.base_url)) if options.base_url else MiniLM()
    try:
        await measure(embedder)
    finally:
        await embedder.aclose()


if __name__ == "__main__":
    asyncio.run(main())
