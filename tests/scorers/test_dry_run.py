"""A judge and an embedder that count requests without sending them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.cases import each

from germane.exchange import Exchange
from germane.registry import BUILTIN_SCORER_NAMES
from germane.score import Score
from germane.scorers import schema_instance
from germane.scorers.factory.dry_run import RequestEstimate, build_dry_run_scorer, estimate_output_tokens
from germane.settings import load_settings


@each(
    ("name", "options"),
    [
        *((name, {}) for name in BUILTIN_SCORER_NAMES),
        ("answer_relevancy", {"similarity": "judge"}),
        ("faithfulness", {"claims": "judge"}),
    ],
)
def test_every_scorer_accepts_the_simulated_replies_of_a_dry_run(
    name: str, options: dict[str, str], exchange: Callable[..., Exchange], score: Callable[..., list[Score]]
) -> None:
    """The minimal reply is valid: no request is repeated or sent to a server."""
    contexts = ("The ferry leaves from pier four.", "The fish market is open daily.")
    settings = load_settings(scorers=(name,), scorer_options={name: options})
    scorer, _ = build_dry_run_scorer(name, settings, judge="judge", embedder="embedder")

    (result,) = score(scorer, exchange(*make_texts(), *contexts))

    assert result.reason is None, result.explanation


def make_texts() -> tuple[str, str]:
    return "Where does the ferry leave?", "The ferry leaves from pier four. It is behind the fish market."


def test_a_dry_run_counts_requests_and_tokens(
    exchange: Callable[..., Exchange], score: Callable[..., list[Score]]
) -> None:
    """Input tokens are estimated from bytes, output tokens are assumed per choice, and all embedded texts are counted.

    The second request is the rating for the label, which has one output token.
    """
    scorer, measured = build_dry_run_scorer(
        "answer_relevancy", load_settings(generated_questions=2), judge="judge", embedder="embedder"
    )
    short, long = (
        exchange("Why so?", "Because it rains."),
        exchange("Why so?", "Because it rains" + " a lot" * 40 + "."),
    )

    score(scorer, short)
    first = RequestEstimate(measured.requests, measured.input_tokens, measured.output_tokens, measured.embedded_tokens)
    score(scorer, long)
    second = measured.since(first)

    assert (first.requests, second.requests) == (2, 2)
    assert second.input_tokens - first.input_tokens == pytest.approx(2 * 40 * 6 / 4, abs=1e-9)
    reply = '{"question": "What is point 1 about?"}'
    assert first.output_tokens == pytest.approx(2 * estimate_output_tokens(reply) + 1, abs=1e-9)
    assert first.embedded_tokens == pytest.approx((7 + 2 * 22 + 17) / 4, abs=1e-9)


@each(
    ("schema", "value"),
    [
        ({"type": "boolean"}, False),
        ({"type": "integer", "minimum": 3}, 3),
        ({"type": "number", "enum": [1.0, 0.5]}, 1.0),
        ({"type": "array", "minItems": 2, "items": {"type": "integer"}}, [1, 2]),
        ({"type": "array", "maxItems": 0, "items": {"type": "integer"}}, []),
        ({"type": "object", "properties": {"verdict": {"type": "string", "enum": ["yes", "no"]}}}, {"verdict": "yes"}),
    ],
)
def test_the_simulated_reply_contains_only_what_the_schema_requires(schema: dict[str, Any], value: Any) -> None:
    """The value contains what the schema requires and nothing else."""
    assert schema_instance(schema, number=1) == value
