"""Model prices."""

from __future__ import annotations

import asyncio
from datetime import date

import pytest
from tests.cases import each

from germane.exchange import Message
from germane.scorers import Reply
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.scorers.judge.prices import FREE_PRICE, PriceList, price_list_date
from germane.settings import Price
from germane.testing import FakeJudge

MINI = Price(input=0.15, output=0.6)


@each("model", ["gpt-4o-mini", "gpt-4o-mini-2024-07-18", "gpt-4o-mini-latest"])
def test_a_dated_version_has_the_price_of_its_model(model: str) -> None:
    """Servers return the model name with the date of the version."""
    assert PriceList().find_price(model) == MINI


def test_the_longest_matching_model_name_determines_the_price() -> None:
    """A version can have its own price."""
    assert PriceList().find_price("gpt-4o-2024-08-06") == Price(input=2.5, output=10)
    assert PriceList().find_price("gpt-4o-2024-05-13") == Price(input=5, output=15)


@each("model", ["gpt-4o-mini-tts", "gpt-4o-realtime", "gpt-4.12", "gpt-4", "my-model", "gpt-5-pro", ""])
def test_an_unknown_model_has_no_price(model: str) -> None:
    """A name that starts with a known name is a different model. Its price is unknown and not guessed."""
    assert PriceList().find_price(model) is None
    assert PriceList().request_cost(model, None, 1_000, 1_000) is None


def test_configured_prices_take_precedence() -> None:
    """Configured prices match the configured and the served model name, including versions."""
    mine = Price(input=1, output=2)
    prices = PriceList({"gpt-4o-mini": mine, "house-model": mine})

    assert prices.find_price("gpt-4o-mini-2024-07-18") == mine
    assert prices.find_price("house-model", "some-weights-q4") == mine
    assert prices.find_price("alias", "house-model") == mine


def test_built_in_prices_apply_to_the_served_model() -> None:
    """A self-hosted server can be asked for gpt-4o-mini and serve another model."""
    assert PriceList().find_price("gpt-4o-mini", "qwen2.5-1.5b-instruct") is None
    assert PriceList().find_price("a-deployment", "gpt-4o-mini-2024-07-18") == MINI


def test_embedded_models_cost_nothing() -> None:
    """Embedded models run on this machine."""
    assert PriceList().find_price("local:smollm2-135m") == FREE_PRICE
    assert PriceList().request_cost("local:smollm2-135m", None, 100, 100) == 0.0


def test_the_cost_of_a_reply_is_tokens_times_price() -> None:
    """Prices are in US dollars per million input and output tokens. If a count is missing, the cost is unknown."""
    assert PriceList().request_cost("gpt-4o-mini", None, 2_000_000, 1_000_000) == pytest.approx(0.9, abs=1e-9)
    assert PriceList().request_cost("gpt-4o-mini", None, 12, None) is None


def test_the_built_in_price_list_has_a_date() -> None:
    """Prices change, so the list states when they were looked up."""
    assert price_list_date() >= date(2026, 11, 1)


def ask(fake: FakeJudge, prices: PriceList | None) -> Reply:
    async def ask_once() -> Reply:
        judge = OpenAIJudge("house-model", ModelServer(api_key="test", base_url=fake.base_url), prices=prices)
        try:
            return await judge.ask([Message("user", "Why?")])
        finally:
            await judge.aclose()

    return asyncio.run(ask_once())


def test_a_judge_reply_contains_its_cost(fake: FakeJudge) -> None:
    """The cost is computed from the server's token counts. Without a price, it is unknown rather than 0."""
    reply = ask(fake, PriceList({"house-model": Price(input=100, output=1_000)}))
    assert reply.input_tokens
    assert reply.output_tokens
    assert reply.cost == pytest.approx((100 * reply.input_tokens + 1_000 * reply.output_tokens) / 1e6, abs=1e-9)
    assert ask(fake, None).cost is None

    fake.model = "gpt-4o-mini-2024-07-18"
    assert ask(fake, None).cost == pytest.approx(
        (0.15 * reply.input_tokens + 0.6 * reply.output_tokens) / 1e6, abs=1e-9
    )
