"""What is known of an exchange before any draw: filters, rules that always score, and functions of the user's."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from germane.errors import SettingsError
from germane.exchange import Exchange
from germane.monitor import Monitor
from germane.monitor.sampling.eligibility import Fit, Fitness
from germane.monitor.sampling.sampler import decide
from germane.score import Reason
from germane.settings import Settings
from germane.storage import Store

MODULE = """
import asyncio

import numpy

calls = []

def is_long(exchange):
    calls.append(exchange.id)
    return len(exchange.answer) > 20

def fails(exchange):
    raise ValueError("the question was " + exchange.question)

def exits(exchange):
    raise SystemExit("warranty")

def gives_up(exchange):
    raise asyncio.CancelledError("warranty")

def says_nothing(exchange):
    pass

def says_many_things(exchange):
    return numpy.array([True, False])

async def later(exchange):
    return True

class Kind:
    @staticmethod
    def is_short(exchange):
        return len(exchange.answer) <= 20

class Called:
    pass

number = 3
"""


class Plain:
    """A scorer that needs question and answer."""

    range = (0.0, 1.0)
    fingerprint = "f1"
    requires = frozenset({"question", "answer"})

    def __init__(self, name: str = "plain") -> None:
        self.name = name

    async def score(self, exchange: Exchange) -> float:
        return 0.5


@pytest.fixture
def predicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The user's module ``chosen``."""
    (tmp_path / "chosen.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda: sys.modules["chosen"]
    sys.modules.pop("chosen", None)


@pytest.fixture
def fit_of(settings: Callable[..., Settings]) -> Callable[..., Fit]:
    def fit_of(exchange: Exchange, **rules: Any) -> Fit:
        given = settings(**rules)
        return Fitness([Plain()], filters=given.filters, always=given.always).of(exchange)

    return fit_of


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ({"routes": ["support-*", "faq"]}, True),
        ({"routes": ["support"]}, False),
        ({"routes": ["Support-*"]}, False),
        ({"attributes": {"tenant": "acme*"}}, True),
        ({"attributes": {"tenant": "acme*", "beta": "true"}}, True),
        ({"attributes": {"beta": "false"}}, False),
        ({"attributes": {"retries": "3"}}, True),
        ({"attributes": {"region": "*"}}, False),
        ({"routes": ["support-*"], "attributes": {"tenant": "other"}}, False),
        ({"status": ["error"]}, False),
    ],
)
def test_a_filter_chooses_by_all_that_it_names(
    fit_of: Callable[..., Fit], new_exchange: Any, match: dict[str, Any], fits: bool
) -> None:
    """Routes and attributes are patterns of text, upper case is not lower case, and all that is named must fit."""
    exchange = new_exchange(route="support-de", attributes={"tenant": "acme-1", "beta": True, "retries": 3})

    assert fit_of(exchange, filters={"plain": match}).unfit == ({} if fits else {"plain": Reason.FILTERED})
    assert fit_of(exchange, always=[match]).always is fits


def test_a_filter_is_of_one_scorer(settings: Callable[..., Settings], new_exchange: Any) -> None:
    """What one scorer does not look at, the others score; and an input that is missing is told before a filter."""
    given = settings(filters={"plain": {"routes": ["docs"]}})
    fitness = Fitness([Plain(), Plain("other")], filters=given.filters)

    assert fitness.of(new_exchange(route="ask")).unfit == {"plain": Reason.FILTERED}
    assert fitness.of(new_exchange(route="docs")).unfit == {}
    assert fitness.of(new_exchange(route="ask", answer=None)).unfit == dict.fromkeys(
        ("plain", "other"), Reason.MISSING_INPUT
    )


@pytest.mark.parametrize("status", ["error", "abandoned", "cancelled"])
def test_half_an_answer_is_scored_only_for_who_asks_for_it(
    fit_of: Callable[..., Fit], new_exchange: Any, status: str
) -> None:
    """A handler that failed is scored where a filter or a rule names how it ended, and not for any other rule."""
    cut_short = new_exchange(status=status)

    assert fit_of(cut_short).unfit == {"plain": Reason.FILTERED}
    assert fit_of(cut_short, always=[{"status": [status]}]) == Fit({}, always=True)
    assert fit_of(cut_short, filters={"plain": {"status": ["ok", status]}}).unfit == {}
    assert fit_of(cut_short, always=[{"routes": ["*"]}]) == Fit({"plain": Reason.FILTERED}, always=True)
    assert fit_of(cut_short, always=[{"status": [status]}], filters={"plain": {"status": ["ok"]}}).unfit == {
        "plain": Reason.FILTERED
    }
    assert fit_of(new_exchange(status=status, answer=None), always=[{"status": [status]}]).unfit == {
        "plain": Reason.MISSING_INPUT
    }


def test_a_predicate_chooses(predicates: Any, fit_of: Callable[..., Fit], new_exchange: Any) -> None:
    """A function of the user's decides, and is asked only for what fits otherwise."""
    long, short = new_exchange(), new_exchange(answer="no")
    rule = {"routes": ["ask"], "predicate": "chosen:is_long"}

    assert fit_of(long, filters={"plain": rule}).unfit == {}
    assert fit_of(short, filters={"plain": rule}).unfit == {"plain": Reason.FILTERED}
    assert fit_of(new_exchange(route="docs"), always=[rule]).always is False
    assert fit_of(short, always=[{"predicate": "chosen:Kind.is_short"}]).always is True
    assert predicates().calls == [long.id, short.id]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("fails", "ValueError"),
        ("says_nothing", "TypeError"),
        ("says_many_things", "ValueError"),
        ("exits", "SystemExit"),
        ("gives_up", "CancelledError"),
    ],
)
def test_a_predicate_that_fails_decides_nothing(
    predicates: Any,
    settings: Callable[..., Settings],
    new_exchange: Any,
    caplog: pytest.LogCaptureFixture,
    name: str,
    error: str,
) -> None:
    """A filter lets through what its predicate fails for, a rule does not take it; it is said once, without text."""
    given = settings(filters={"plain": {"predicate": f"chosen:{name}"}}, always=[{"predicate": f"chosen:{name}"}])
    filtering = Fitness([Plain()], filters=given.filters)
    asking = Fitness([Plain()], always=given.always)

    with caplog.at_level(logging.INFO, "germane"):
        assert {filtering.of(new_exchange()) == Fit() for _ in range(3)} == {True}
    (line,) = caplog.messages
    assert f"chosen:{name}" in line
    assert error in line
    assert "warranty" not in line
    assert asking.of(new_exchange()) == Fit()


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("nowhere:is_odd", "No module named 'nowhere'"),
        ("chosen:gone", "has no attribute 'gone'"),
        ("chosen:later", "not async"),
        ("chosen:Called", "must be a function"),
        ("chosen:number", "must be a function"),
    ],
)
@pytest.mark.parametrize(
    ("rules", "setting"),
    [
        (lambda name: {"filters": {"plain": {"predicate": name}}}, "filters.plain.predicate"),
        (lambda name: {"always": [{"routes": ["ask"]}, {"predicate": name}]}, "always.1.predicate"),
    ],
)
def test_a_predicate_that_is_not_there_is_refused_at_the_start(
    predicates: Any,
    store: Store,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    rules: Any,
    setting: str,
    name: str,
    cause: str,
) -> None:
    """The refusal names the setting, its value and the cause."""
    with pytest.raises(SettingsError) as refusal:
        start(store, [Plain()], settings=settings(**rules(name)))

    assert f"setting {setting} = {name!r}" in str(refusal.value)
    assert cause in str(refusal.value)


def test_a_filter_of_a_scorer_that_does_not_run_is_told(
    store: Store, start: Callable[..., Monitor], settings: Callable[..., Settings], caplog: pytest.LogCaptureFixture
) -> None:
    """A misspelt name changes nothing, and the log says so at the start."""
    start(store, [Plain()], settings=settings(filters={"plane": {"routes": ["docs"]}, "plain": {"routes": ["*"]}}))

    (line,) = [line for line in caplog.messages if "filters." in line]
    assert "filters.plane" in line


@pytest.mark.parametrize("draw", [0.001, 0.999])
@pytest.mark.parametrize("kept", [1.0, 0.25])
def test_what_a_rule_asks_for_is_no_matter_of_luck(
    settings: Callable[..., Settings], new_exchange: Any, draw: float, kept: float
) -> None:
    """It is scored whatever its draw; its probability is that of being kept under the capture limit."""
    fitness = Fitness([Plain()], always=settings(always=[{"routes": ["ask"]}]).always)
    exchange = new_exchange(draw=draw, capture_probability=kept)

    decision = decide(exchange, rate=0.1, fit=fitness.of(exchange), scorers=["plain"])

    assert (decision.sampling_reason, decision.probability, decision.skip) == ("always", kept, {})


@pytest.mark.parametrize(("kept", "probability"), [(1.0, 0.2), (0.25, 0.2), (0.1, 0.1)])
def test_the_capture_limit_counts(new_exchange: Any, kept: float, probability: float) -> None:
    """The draw that kept an exchange is the one that draws it: its probability is the lesser of the two."""
    for draw, reason in ((0.09, "drawn"), (0.3, "not_drawn")):
        exchange = new_exchange(draw=draw, capture_probability=kept)
        decision = decide(exchange, rate=0.2, fit=Fit(), scorers=["plain"])
        assert (decision.sampling_reason, decision.probability) == (reason, probability)


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_rules_score_what_the_rate_leaves_out(
    store: Store, start: Callable[..., Monitor], settings: Callable[..., Settings], new_exchange: Any, until: Any
) -> None:
    """With a rate of 0, exactly what a rule asks for is scored, a failed handler's answer among it."""
    chosen = [new_exchange(route="vip"), new_exchange(status="error")]
    store.add([*chosen, new_exchange(), new_exchange(route="vip", status="abandoned")])
    start(store, [Plain()], settings=settings(rate=0.0, always=[{"routes": ["vip"]}, {"status": ["error"]}]))

    until(lambda: store.counts().unsampled == 0 and store.counts().rows == 2)

    assert {scored.exchange.id for scored in store.worst()} == {one.id for one in chosen}
    assert store.counts().skipped_reasons == {Reason.NOT_DRAWN: 1, Reason.FILTERED: 1}
