"""Construction of scorers from settings, with one shared judge and embedder that are created on demand."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import cached_property
from importlib import import_module
from typing import cast

from germane import registry
from germane.errors import SettingsError, UsageError
from germane.scorers.base.protocols import Embedder, Judge, Scorer
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.coalescing import ClosableJudge, CoalescingJudge
from germane.scorers.judge.embedding_batcher import EmbeddingBatcher
from germane.scorers.judge.openai_embedder import OpenAIEmbedder
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.scorers.judge.prices import PriceList, UsageMeter
from germane.scorers.judge.rate_limit import RateLimiter
from germane.scorers.plugins import FunctionScorer, load_plugin, plugin_names, scorer_defect
from germane.settings import DEFAULT_EMBEDDER, LOCAL, Settings


class ScorerFactory:
    """Creates the scorers of one process, and whatever several of them share."""

    def __init__(self, settings: Settings, rate_limiter: RateLimiter | None = None) -> None:
        self.settings = settings
        self.rate_limiter = rate_limiter
        self.closers: list[Callable[[], Awaitable[None]]] = [] if rate_limiter is None else [rate_limiter.aclose]
        """Functions to call on shutdown, in reverse order."""
        self.meter = UsageMeter()
        """Usage of the judge and the embedder."""
        self._scorers: dict[str, Scorer] = {}

    def resolve(self, scorer: object) -> Scorer:
        """Return the scorer for a name, a function of an exchange, or a scorer.

        Raises:
            UsageError: the object is none of these.
            SettingsError, ModelError: see :meth:`get_scorer`.
        """
        if isinstance(scorer, str):
            return self.get_scorer(scorer)
        if inspect.isclass(scorer):
            raise UsageError(f"{scorer.__qualname__} is a class; pass an instance of it")
        if not hasattr(scorer, "score") and callable(scorer):
            if declaration := registry.declaration_of_function(scorer):
                return self.get_scorer(declaration.name)
            declaration = registry.build_declaration(scorer)
            if declaration.name in registry.BUILTIN_SCORER_NAMES:
                raise UsageError(str(registry.NameConflict(declaration.name, declaration.origin)))
            return self._register_closer(FunctionScorer(declaration))
        if defect := scorer_defect(scorer):
            raise UsageError(f"{scorer!r:.100} is not a scorer: {defect}")
        return cast("Scorer", scorer)

    def get_scorer(self, name: str) -> Scorer:
        """Return the scorer with this name, always the same instance.

        Raises:
            SettingsError: it is unknown, its options are invalid, or its judge or embedder is not configured.
            ModelError: the weights of an embedded model are missing or corrupt.
        """
        if name not in self._scorers:
            is_builtin = name in registry.BUILTIN_SCORER_NAMES
            self._scorers[name] = self._build_builtin(name) if is_builtin else self._find_user_scorer(name)
        return self._scorers[name]

    @cached_property
    def judge(self) -> Judge:
        """The configured judge, shared by all scorers."""
        settings = self.settings
        judge: ClosableJudge
        if settings.judge == LOCAL:
            from germane.scorers.local.llm import LocalJudge

            judge = LocalJudge(
                settings.local_judge_path, questions=settings.generated_questions, timeout=settings.judge_timeout
            )
        else:
            judge = OpenAIJudge(
                settings.judge,
                self._server(f"the judge {settings.judge!r}"),
                concurrency=settings.concurrency,
                prices=PriceList(settings.prices),
                rate_limiter=self.rate_limiter,
            )
        coalescing = CoalescingJudge(judge, self.meter)
        self.closers.append(coalescing.aclose)
        return coalescing

    @cached_property
    def embedder(self) -> EmbeddingBatcher:
        """The configured embedder, shared by all scorers."""
        uses_server = self.settings.has_server and self.settings.judge != LOCAL
        name = self.settings.embedder or (DEFAULT_EMBEDDER if uses_server else LOCAL)
        if name == LOCAL:
            from germane.scorers.local.minilm import MiniLM

            local = MiniLM()
            self.closers.append(local.aclose)
            batcher = EmbeddingBatcher(local)
        else:
            remote = OpenAIEmbedder(name, self._server(f"the embedder {name!r}"), meter=self.meter)
            self.closers.append(remote.aclose)
            batcher = EmbeddingBatcher(remote)
        self.closers.append(batcher.aclose)
        return batcher

    @property
    def models_in_use(self) -> tuple[Judge | None, Embedder | None]:
        """The judge and the embedder, if a scorer needed them so far."""
        return self.__dict__.get("judge"), self.__dict__.get("embedder")

    def _build_builtin(self, name: str) -> Scorer:
        module = import_module(f"germane.scorers.metrics.{name}")
        try:
            scorer: Scorer = module.build(self, self.settings.scorer_options.get(name, {}))
        except SettingsError:
            raise
        except (TypeError, ValueError) as error:
            raise SettingsError(f"setting scorer_options.{name}: {error}") from None
        return scorer

    def _find_user_scorer(self, name: str) -> Scorer:
        """Return a declared function, otherwise the scorer of an installed package."""
        declaration = registry.find_declaration(name)
        scorer = FunctionScorer(declaration) if declaration else load_plugin(name)
        if scorer is None:
            known = dict.fromkeys([*registry.BUILTIN_SCORER_NAMES, *registry.declared_names(), *plugin_names()])
            raise SettingsError(
                f"setting scorers: unknown scorer {name!r}; known are {', '.join(known)}. To use your own, list the "
                "module that defines it in the setting imports"
            )
        if self.settings.scorer_options.get(name):
            raise SettingsError(f"setting scorer_options.{name}: user-defined scorers take no options")
        return self._register_closer(scorer) if isinstance(scorer, FunctionScorer) else scorer

    def _register_closer(self, scorer: FunctionScorer) -> FunctionScorer:
        self.closers.append(scorer.aclose)
        return scorer

    def _server(self, what: str) -> ModelServer:
        settings = self.settings
        if not settings.has_server:
            raise SettingsError(
                f"{what} needs a server: set OPENAI_API_KEY, or OPENAI_BASE_URL for one that needs no key"
            )
        return ModelServer(
            api_key=settings.api_key.get_secret_value() if settings.api_key else None,
            base_url=settings.base_url.get_secret_value() if settings.base_url else None,
            timeout=settings.judge_timeout,
        )
