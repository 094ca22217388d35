"""A sample week of one service, written through the store; the same exchanges and scores every time.

Three routes and about 1,500 exchanges, 80% of them sampled. From 29 hours before the end, ``docs-search`` no longer
answers the question, because an index was rebuilt incorrectly. ``seed`` writes everything that a page can show.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
from tests.dashboard import seeding_alerts, seeding_scores, seeding_traces
from tests.dashboard.seeding_texts import ASIDES, ASK, REFUSALS, SEARCH, SUPPORT, TOPICS, Topic, topics_of

from germane.exchange import Context, Exchange, sampling_key_for
from germane.score import Score, UnscoredReason
from germane.storage import LabelPopulation, SamplingDecision, TaskClaim, TrackingStore

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
SERVICE = "handbook"
EXCHANGES = 1_500
WEEK = timedelta(days=7)
DROP = timedelta(hours=29)
"""Age of the drop on ``docs-search``."""
EVALUATED = timedelta(hours=22)
"""Age of the evaluation that detects the drop."""
RATE = 0.8
ROLLED_UP_HOURS = 30
"""Number of hours with rollups. Only part of the week has them, so that pages read both rollups and raw scores."""
SHARES = {ASK: 0.42, SEARCH: 0.36, SUPPORT: 0.22}
FINGERPRINTS = {
    "answer_relevancy": "5d0c1f27a9be",
    "faithfulness": "b81e44c07d93",
    "context_relevance": "2f9a6b3e10c8",
}
WATCHED = {
    (seeding_traces.LANGCHAIN, "recognized"): 1_180,
    (seeding_traces.LANGCHAIN, "not_an_exchange"): 4,
    (seeding_traces.LANGCHAIN, "no_answer"): 5,
}
"""Numbers of watched traces by scope and outcome: too few are unreadable for the overview to mention them."""
UNDECIDED = 3
"""Number of newest exchanges that have no sampling decision."""
PENDING = 9
"""Number of exchanges waiting for scoring, just before the undecided ones."""
OWNER = "worker-1"
LEASE = timedelta(hours=1)


@dataclass(frozen=True)
class SampleExchange:
    """An exchange and the kind of answer it got."""

    exchange: Exchange
    kind: str
    """direct, partly, aside (on another topic), refusal or broken."""
    topic: Topic
    reads_as: tuple[str, ...]


@dataclass(frozen=True)
class Seeded:
    """The rows that were written."""

    now: datetime
    exchanges: Sequence[Exchange]
    scores: Sequence[tuple[Exchange, Score]] = field(default_factory=list)
    """Pairs of exchange and score, only for scores with a value."""
    open_alert: str = ""
    resolved_alert: str = ""
    unreadable_trace: str = ""
    wave: str = ""
    """Id of a wave of 20 answers that nobody has labeled yet."""

    def values(self, scorer: str = "answer_relevancy", route: str | None = None) -> list[float]:
        """Return the values of one scorer, oldest first."""
        return [
            score.value
            for exchange, score in self.scores
            if score.scorer == scorer and route in {None, exchange.route} and score.value is not None
        ]


def seed(store: TrackingStore, now: datetime = NOW) -> Seeded:
    """Write a week into a migrated, empty database. It ends at ``now``, which the store's clock must show."""
    chance = random.Random(20)
    made = _week(now, chance)
    exchanges = [one.exchange for one in made]
    store.exchanges.declare_routes(SERVICE, SHARES)
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks(_decisions(made[: -UNDECIDED - PENDING]), FINGERPRINTS)
    scored = _score(store, [one for one in made if one.exchange.started_at < now - EVALUATED], chance)
    seeding_alerts.learn_baseline(store, SERVICE, FINGERPRINTS["answer_relevancy"], now)
    seeding_alerts.evaluate_rules(store, now - EVALUATED)
    scored += _score(store, [one for one in made if one.exchange.started_at >= now - EVALUATED], chance, busy=2)
    seeding_alerts.evaluate_rules(store, now)
    seeding_alerts.deliver_notifications(store)
    store.sampling.assign_tasks(_decisions(made[-UNDECIDED - PENDING : -UNDECIDED], rate=1.0), FINGERPRINTS)
    store.exchanges.count_dropped(
        {(SERVICE, ASK): 4}, FINGERPRINTS, UnscoredReason.QUEUE_FULL, at=now - timedelta(hours=40)
    )
    seeding_alerts.add_labels(store, scored, random.Random(3))
    seeding_alerts.add_markers(store, SERVICE, now)
    resolved = seeding_alerts.add_resolved_alert(store, SERVICE, now)
    seeding_alerts.add_worker(store, SERVICE, FINGERPRINTS)
    store.rollups.update(breakdowns=("model", "prompt_version"), before=now - timedelta(hours=3), limit=ROLLED_UP_HOURS)
    traces = seeding_traces.add_watched_traces(store, SERVICE, now, WATCHED)
    opened = next(alert.id for alert in store.alerts.list_open() if alert.type == "drop")
    population = LabelPopulation(since=now - timedelta(days=8), until=now, scorer="answer_relevancy")
    wave = store.draws.draw(population, 20, generator=np.random.default_rng(20))
    return Seeded(now, exchanges, scored, opened, resolved, traces[0], wave.id)


def add_second_service(store: TrackingStore, now: datetime = NOW, count: int = 60) -> list[Exchange]:
    """Write a few exchanges of a second service with the same route name, scored only for relevancy."""
    chance = random.Random(5)
    began = sorted(now - timedelta(hours=46) * chance.random() for _ in range(count))
    made = [_one(number, at, ASK, now, chance, service="mobile") for number, at in enumerate(began, start=10_000)]
    only = {"answer_relevancy": FINGERPRINTS["answer_relevancy"]}
    store.exchanges.add([one.exchange for one in made])
    store.sampling.assign_tasks([SamplingDecision(one.exchange.id, 1.0, "sampled") for one in made], only)
    by_id = {one.exchange.id: one for one in made}
    claims = store.queue.claim_tasks(OWNER, only, limit=2 * count, lease=LEASE)
    claims = [claim for claim in claims if claim.exchange.id in by_id]
    results = [
        (task, seeding_scores.sample_score(by_id[task.exchange_id], task, chance))
        for claim in claims
        for task in claim.tasks
    ]
    store.queue.complete_tasks(OWNER, results)
    store.queue.release_tasks(OWNER)
    return [one.exchange for one in made]


def _week(now: datetime, chance: random.Random) -> list[SampleExchange]:
    moments: list[datetime] = []
    while len(moments) < EXCHANGES - 1:
        at = now - timedelta(seconds=20) - WEEK * chance.random()
        busy = 1.0 if 7 <= at.hour < 19 else 0.45
        if chance.random() < busy:
            moments.append(at)
    moments.append(now - timedelta(seconds=25))
    routes = chance.choices(list(SHARES), list(SHARES.values()), k=EXCHANGES)
    pairs = zip(sorted(moments), routes, strict=True)
    return [_one(number, at, route, now, chance) for number, (at, route) in enumerate(pairs)]


def _one(
    number: int, at: datetime, route: str, now: datetime, chance: random.Random, service: str = SERVICE
) -> SampleExchange:
    topic = chance.choice(topics_of(route))
    kind = _kind(route, chance, late=at >= now - DROP)
    answer, reads_as = _answer(topic, kind, chance)
    trace = f"{chance.getrandbits(128):032x}"
    newer = at >= now - timedelta(days=3)
    exchange = Exchange(
        id=f"{int(at.timestamp() * 1000):012x}{number:020x}",
        trace_id=trace,
        span_id=trace[:16],
        service=service,
        route=route,
        question=topic.asked,
        answer=answer,
        contexts=_contexts(topic, kind, chance),
        model="larch-2" if newer else "larch-1",
        prompt_version="7" if newer else "6",
        session=f"session-{number // 3}",
        user=f"user-{number % 211}",
        attributes={"tenant": ("acme", "globex", "initech")[number % 3], "beta": number % 10 == 0},
        status="error" if kind == "broken" else "ok",
        error="UpstreamError: the search index did not answer" if kind == "broken" else None,
        started_at=at,
        duration=round(chance.uniform(0.6, 3.2), 3),
        sampling_key=sampling_key_for(trace),
    )
    return SampleExchange(exchange, kind, topic, reads_as)


def _kind(route: str, chance: random.Random, *, late: bool) -> str:
    weights = {"direct": 88, "partly": 6, "aside": 2.5, "refusal": 3, "broken": 0.5}
    if route == SUPPORT:
        weights |= {"direct": 74, "partly": 18}
    if route == SEARCH and late:
        weights = {"direct": 28, "partly": 6, "aside": 52, "refusal": 14, "broken": 0}
    return chance.choices(list(weights), list(weights.values()))[0]


def _answer(topic: Topic, kind: str, chance: random.Random) -> tuple[str | None, tuple[str, ...]]:
    if kind == "broken":
        return None, ()
    if kind == "refusal":
        return chance.choice(REFUSALS), ()
    if kind == "partly":
        return topic.answer.split(". ", 1)[-1], topic.reads_as[1:] + topic.reads_as[:1]
    if kind == "aside" and chance.random() < 0.4:
        return chance.choice(ASIDES)
    if kind == "aside":
        other = chance.choice([one for one in TOPICS if one is not topic])
        return other.answer, other.reads_as
    return topic.answer, topic.reads_as


def _contexts(topic: Topic, kind: str, chance: random.Random) -> tuple[Context, ...]:
    """Return three passages. The correct passage comes first, unless retrieval missed it."""
    others = chance.sample([one for one in TOPICS if one is not topic], 3)
    chosen = others if kind in {"aside", "refusal"} else [topic, *others[:2]]
    near = sorted((chance.uniform(0.28, 0.6) for _ in chosen), reverse=True)
    near[0] += 0.0 if kind in {"aside", "refusal"} else 0.25
    return tuple(
        Context(text=one.answer, id=f"{one.page}#1", score=round(score, 3))
        for one, score in zip(chosen, near, strict=True)
    )


def _decisions(made: Sequence[SampleExchange], rate: float = RATE) -> list[SamplingDecision]:
    """Sample at a rate. Exchanges that ended with an error are always scored."""
    decisions = []
    for one in made:
        exchange = one.exchange
        drawn = exchange.sampling_key <= rate
        skip = {} if drawn or exchange.error else dict.fromkeys(FINGERPRINTS, UnscoredReason.NOT_SAMPLED)
        always = exchange.error is not None
        decisions.append(
            SamplingDecision(exchange.id, 1.0 if always else rate, "always" if always else "sampled", skip)
        )
    return decisions


def _score(
    store: TrackingStore, made: Sequence[SampleExchange], chance: random.Random, busy: int = 0
) -> list[tuple[Exchange, Score]]:
    """Score the sampled exchanges. The judge rate-limits the ``busy`` newest of them."""
    by_id = {one.exchange.id: one for one in made}
    drawn = [one for one in made if one.exchange.sampling_key <= RATE or one.exchange.error]
    claims = store.queue.claim_tasks(OWNER, FINGERPRINTS, limit=len(drawn), lease=LEASE)
    claims = [claim for claim in claims if claim.exchange.id in by_id]
    done, late = claims[: len(claims) - busy], claims[len(claims) - busy :]
    pairs = [(claim, task) for claim in done for task in claim.tasks]
    results = [(task, seeding_scores.sample_score(by_id[task.exchange_id], task, chance)) for _, task in pairs]
    store.queue.complete_tasks(OWNER, results)
    if late:
        _postpone(store, late, store.now() + timedelta(minutes=4))
    store.queue.release_tasks(OWNER)
    scores = zip(pairs, results, strict=True)
    return [(claim.exchange, score) for (claim, _), (_, score) in scores if score.value is not None]


def _postpone(store: TrackingStore, late: Sequence[TaskClaim], until: datetime) -> None:
    tasks = [task for claim in late for task in claim.tasks]
    message = "Error code: 429 - requests per minute of larch-judge are used up, try again in 20 s"
    store.queue.postpone_tasks(OWNER, tasks, until=until, reason=UnscoredReason.JUDGE_RATE_LIMITED, error=message)
