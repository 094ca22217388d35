"""Eligibility before sampling: filters, rules that always score, and predicates."""

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
from germane.monitor.sampling.eligibility import Eligibility, EligibilityChecker
from germane.monitor.sampling.sampler import decide_sampling
from germane.score import UnscoredReason
from germane.settings import Settings
from germane.storage import TrackingStore

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
    """A user's module ``chosen`` with predicates."""
    (tmp_path / "chosen.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda: sys.modules["chosen"]
    sys.modules.pop("chosen", None)


@pytest.fixture
def check(settings: Callable[..., Settings]) -> Callable[..., Eligibility]:
    def check(exchange: Exchange, **rules: Any) -> Eligibility:
        given = settings(**rules)
        return EligibilityChecker([Plain()], filters=given.filters, always_score=given.always_score).check(exchange)

    return check


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
def test_a_scorer_filter_requires_all_of_its_conditions(
    check: Callable[..., Eligibility], new_exchange: Any, match: dict[str, Any], fits: bool
) -> None:
    """Routes and attributes are case-sensitive patterns, and every condition must match."""
    exchange = new_exchange(route="support-de", attributes={"tenant": "acme-1", "beta": True, "retries": 3})

    assert check(exchange, filters={"plain": match}).skip_reasons == (
        {} if fits else {"plain": UnscoredReason.FILTERED}
    )
    assert check(exchange, always_score=[match]).always_score is fits


def test_a_scorer_filter_applies_only_to_its_scorer(settings: Callable[..., Settings], new_exchange: Any) -> None:
    """Other scorers are unaffected, and a missing input is reported before a filter."""
    given = settings(filters={"plain": {"routes": ["docs"]}})
    eligibility = EligibilityChecker([Plain(), Plain("other")], filters=given.filters)

    assert eligibility.check(new_exchange(route="ask")).skip_reasons == {"plain": UnscoredReason.FILTERED}
    assert eligibility.check(new_exchange(route="docs")).skip_reasons == {}
    assert eligibility.check(new_exchange(route="ask", answer=None)).skip_reasons == dict.fromkeys(
        ("plain", "other"), UnscoredReason.MISSING_INPUT
    )


@pytest.mark.parametrize("status", ["error", "abandoned", "cancelled"])
def test_incomplete_answers_are_scored_only_if_a_rule_or_filter_names_their_status(
    check: Callable[..., Eligibility], new_exchange: Any, status: str
) -> None:
    """A failed handler's answer is scored if a filter or rule names its status, but not because of other rules."""
    cut_short = new_exchange(status=status)

    assert check(cut_short).skip_reasons == {"plain": UnscoredReason.FILTERED}
    assert check(cut_short, always_score=[{"status": [status]}]) == Eligibility({}, always_score=True)
    assert check(cut_short, filters={"plain": {"status": ["ok", status]}}).skip_reasons == {}
    assert check(cut_short, always_score=[{"routes": ["*"]}]) == Eligibility(
        {"plain": UnscoredReason.FILTERED}, always_score=True
    )
    assert check(
        cut_short, always_score=[{"status": [status]}], filters={"plain": {"status": ["ok"]}}
    ).skip_reasons == {"plain": UnscoredReason.FILTERED}
    assert check(new_exchange(status=status, answer=None), always_score=[{"status": [status]}]).skip_reasons == {
        "plain": UnscoredReason.MISSING_INPUT
    }


def test_a_predicate_is_called_only_if_all_other_conditions_match(
    predicates: Any, check: Callable[..., Eligibility], new_exchange: Any
) -> None:
    """A user's function is called last, and decides."""
    long, short = new_exchange(), new_exchange(answer="no")
    rule = {"routes": ["ask"], "predicate": "chosen:is_long"}

    assert check(long, filters={"plain": rule}).skip_reasons == {}
    assert check(short, filters={"plain": rule}).skip_reasons == {"plain": UnscoredReason.FILTERED}
    assert check(new_exchange(route="docs"), always_score=[rule]).always_score is False
    assert check(short, always_score=[{"predicate": "chosen:Kind.is_short"}]).always_score is True
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
def test_a_predicate_that_raises_an_error_is_ignored(
    predicates: Any,
    settings: Callable[..., Settings],
    new_exchange: Any,
    caplog: pytest.LogCaptureFixture,
    name: str,
    error: str,
) -> None:
    """A filter then accepts the exchange, and a rule does not. The failure is logged once, without the exception's
    message."""
    given = settings(filters={"plain": {"predicate": f"chosen:{name}"}}, always_score=[{"predicate": f"chosen:{name}"}])
    filtering = EligibilityChecker([Plain()], filters=given.filters)
    asking = EligibilityChecker([Plain()], always_score=given.always_score)

    with caplog.at_level(logging.INFO, "germane"):
        assert {filtering.check(new_exchange()) == Eligibility() for _ in range(3)} == {True}
    (line,) = caplog.messages
    assert f"chosen:{name}" in line
    assert error in line
    assert "warranty" not in line
    assert asking.check(new_exchange()) == Eligibility()


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("nowhere:is_odd", "No module named 'nowhere'"),
        ("chosen:gone", "has no attribute 'gone'"),
        ("chosen:later", "synchronous function"),
        ("chosen:Called", "must be a synchronous function"),
        ("chosen:number", "must be a synchronous function"),
    ],
)
@pytest.mark.parametrize(
    ("rules", "setting"),
    [
        (lambda name: {"filters": {"plain": {"predicate": name}}}, "filters.plain.predicate"),
        (lambda name: {"always_score": [{"routes": ["ask"]}, {"predicate": name}]}, "always_score.1.predicate"),
    ],
)
def test_an_invalid_predicate_raises_an_error_at_the_start(
    predicates: Any,
    store: TrackingStore,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    rules: Any,
    setting: str,
    name: str,
    cause: str,
) -> None:
    """The error names the setting, its value and the cause."""
    with pytest.raises(SettingsError) as refusal:
        start(store, [Plain()], settings=settings(**rules(name)))

    assert f"setting {setting} = {name!r}" in str(refusal.value)
    assert cause in str(refusal.value)


def test_a_filter_for_a_scorer_that_does_not_run_is_logged(
    store: TrackingStore,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A misspelled name has no effect, and a log line at the start reports it."""
    start(store, [Plain()], settings=settings(filters={"plane": {"routes": ["docs"]}, "plain": {"routes": ["*"]}}))

    (line,) = [line for line in caplog.messages if "filters." in line]
    assert "filters.plane" in line


@pytest.mark.parametrize("draw", [0.001, 0.999])
@pytest.mark.parametrize("kept", [1.0, 0.25])
def test_an_always_score_rule_overrides_the_sampling_key(
    settings: Callable[..., Settings], new_exchange: Any, draw: float, kept: float
) -> None:
    """The probability is the capture probability."""
    eligibility = EligibilityChecker([Plain()], always_score=settings(always_score=[{"routes": ["ask"]}]).always_score)
    exchange = new_exchange(sampling_key=draw, capture_probability=kept)

    decision = decide_sampling(exchange, sample_rate=0.1, eligibility=eligibility.check(exchange), scorers=["plain"])

    assert (decision.sampling_reason, decision.probability, decision.skip) == ("always", kept, {})


@pytest.mark.parametrize(("kept", "probability"), [(1.0, 0.2), (0.25, 0.2), (0.1, 0.1)])
def test_inclusion_probability_accounts_for_the_exchange_limit(
    new_exchange: Any, kept: float, probability: float
) -> None:
    """Capture and sampling use the same key, so the probability is the smaller of the two."""
    for draw, reason in ((0.09, "sampled"), (0.3, "not_sampled")):
        exchange = new_exchange(sampling_key=draw, capture_probability=kept)
        decision = decide_sampling(exchange, sample_rate=0.2, eligibility=Eligibility(), scorers=["plain"])
        assert (decision.sampling_reason, decision.probability) == (reason, probability)


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_always_score_rules_apply_at_a_sample_rate_of_0(
    store: TrackingStore,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Any,
) -> None:
    """Only exchanges that a rule requires to be scored are scored, including a failed handler's answer."""
    chosen = [new_exchange(route="vip"), new_exchange(status="error")]
    store.exchanges.add([*chosen, new_exchange(), new_exchange(route="vip", status="abandoned")])
    start(
        store, [Plain()], settings=settings(sample_rate=0.0, always_score=[{"routes": ["vip"]}, {"status": ["error"]}])
    )

    until(lambda: store.answers.counts().undecided == 0 and store.answers.counts().scores == 2)

    assert {scored.exchange.id for scored in store.answers.worst()} == {one.id for one in chosen}
    assert store.answers.counts().skipped_reasons == {UnscoredReason.NOT_SAMPLED: 1, UnscoredReason.FILTERED: 1}
