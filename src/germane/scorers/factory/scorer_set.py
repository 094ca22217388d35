"""Construction of a process's scorers from the settings, and of the judge and the embedder that they share."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from typing import Any, cast

from germane import registry
from germane.errors import SettingsError, UnknownScorer, UsageError
from germane.installation import install_command
from germane.registry import BUILTIN_SCORER_NAMES, NameConflict
from germane.scorers.base.protocols import CHECK_MESSAGE, MAX_REPLY_TOKENS, Embedder, Judge, Scorer
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.coalescing import ClosableJudge, CoalescingJudge
from germane.scorers.judge.embedders import EmbeddingBatcher, OpenAIEmbedder
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.scorers.judge.prices import PriceList, UsageMeter
from germane.scorers.judge.rate_limit import RateLimiter
from germane.scorers.local.similarity import is_local_installed
from germane.scorers.plugins import (
    FunctionScorer,
    find_name_conflicts,
    import_modules,
    load_plugin,
    plugin_names,
    scorer_defect,
)
from germane.settings import DEFAULT_EMBEDDER, LOCAL, Settings

LOCAL_CHECK_TOKENS = 8
"""Token limit for the check request to the embedded judge. That judge does not reason, and does not stop on its own."""
log = logging.getLogger("germane.scorers")
_logged_conflicts: set[NameConflict] = set()


class ScorerFactory:
    """Creates a process's scorers and the objects that they share."""

    def __init__(self, settings: Settings, rate_limiter: RateLimiter | None = None) -> None:
        self.settings = settings
        self.rate_limiter = rate_limiter
        self.closers: list[Callable[[], Awaitable[None]]] = [] if rate_limiter is None else [rate_limiter.aclose]
        """Functions to call on shutdown, in reverse order."""
        self.meter = UsageMeter()
        """The usage of the judge and the embedder."""
        self._scorers: dict[str, Scorer] = {}

    def resolve(self, scorer: object) -> Scorer:
        """Return the scorer for a name, a scoring function, a scorer class, or a scorer.

        Raises:
            UsageError: the object is not one of these.
            SettingsError, ModelError: see :meth:`get_scorer`.
        """
        if isinstance(scorer, str):
            return self.get_scorer(scorer)
        if inspect.isclass(scorer):
            return self._build_class(scorer)
        if not hasattr(scorer, "score") and callable(scorer):
            if declaration := registry.declaration_of_function(scorer):
                return self.get_scorer(declaration.name)
            declaration = registry.build_declaration(scorer)
            if declaration.name in registry.BUILTIN_SCORER_NAMES:
                raise UsageError(str(registry.NameConflict(declaration.name, declaration.origin)))
            function_scorer = FunctionScorer(declaration)
            self.closers.append(function_scorer.aclose)
            return function_scorer
        if defect := scorer_defect(scorer):
            raise UsageError(f"{scorer!r:.100} is not a scorer: {defect}")
        return cast("Scorer", scorer)

    def _build_class(self, scorer: type) -> Scorer:
        """Instantiate a scorer class: a built-in one or its subclass from the settings, any other without arguments."""
        builtin = builtin_base(scorer)
        if builtin is scorer:
            return self.get_scorer(_builtin_name(scorer))
        init = inspect.getattr_static(scorer, "__init__")
        has_own_init = builtin is None or init is not inspect.getattr_static(builtin, "__init__")
        if has_own_init and _takes_no_arguments(scorer):
            return self.resolve(scorer())
        if builtin is None:
            raise UsageError(f"{scorer.__qualname__} is a class; pass an instance of it")
        try:
            return self._build_builtin(_builtin_name(builtin), scorer)
        except TypeError as error:
            raise UsageError(
                f"{scorer.__qualname__} cannot be built like {builtin.__qualname__} ({error}); pass an instance of it"
            ) from None

    def get_scorer(self, name: str) -> Scorer:
        """Return the scorer with this name. The same instance is returned each time.

        Raises:
            SettingsError: the scorer is unknown, its options are invalid, or its judge or embedder is not configured.
            ModelError: the weights of an embedded model are missing or corrupt.
        """
        if name not in self._scorers:
            is_builtin = name in registry.BUILTIN_SCORER_NAMES
            if is_builtin:
                self._scorers[name] = self._build_builtin(name, builtin_class(name))
            else:
                self._scorers[name] = self._find_user_scorer(name)
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
        """The judge and the embedder; each is None if no scorer has needed it yet."""
        return self.__dict__.get("judge"), self.__dict__.get("embedder")

    def _build_builtin(self, name: str, kind: Any) -> Scorer:
        """Build an instance of a built-in scorer's class, or of a subclass, with the options in the settings."""
        try:
            scorer: Scorer = kind.build(self, self.settings.scorer_options.get(name, {}))
        except SettingsError:
            raise
        except (TypeError, ValueError) as error:
            if isinstance(error, TypeError) and not _builtin_name(kind):
                raise
            raise SettingsError(f"setting scorer_options.{name}: {error}") from None
        return scorer

    def _find_user_scorer(self, name: str) -> Scorer:
        """Return a scorer for the declared function with this name, or else the scorer from an installed package."""
        declaration = registry.find_declaration(name)
        scorer = FunctionScorer(declaration) if declaration else load_plugin(name)
        if scorer is None:
            known = dict.fromkeys([*registry.BUILTIN_SCORER_NAMES, *registry.declared_names(), *plugin_names()])
            similar = get_close_matches(name, known, n=1)
            hint = f"did you mean {similar[0]!r}? Known" if similar else "known"
            raise UnknownScorer(
                f"setting scorers: unknown scorer {name!r}; {hint} scorers: {', '.join(known)}. To use your own, list "
                "the module that defines it in the imports setting"
            )
        if self.settings.scorer_options.get(name):
            raise SettingsError(f"setting scorer_options.{name}: user-defined scorers take no options")
        if isinstance(scorer, FunctionScorer):
            self.closers.append(scorer.aclose)
        return scorer

    def _server(self, what: str) -> ModelServer:
        settings = self.settings
        if not settings.has_server:
            raise SettingsError(
                f"{what} needs a server: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs no key"
            )
        return ModelServer(
            api_key=settings.api_key.get_secret_value() if settings.api_key else None,
            base_url=settings.base_url.get_secret_value() if settings.base_url else None,
            timeout=settings.judge_timeout,
        )


def builtin_class(name: str) -> Any:
    """Return the class of a built-in scorer, the only one in its module that scores."""
    content = vars(import_module(f"germane.scorers.metrics.{name}")).values()
    classes = (each for each in content if isinstance(each, type) and _builtin_name(each) == name)
    return next(kind for kind in classes if hasattr(kind, "score"))


def builtin_base(scorer: type) -> type | None:
    """Return the built-in scorer class that a class is or inherits from, or None."""
    return next((base for base in scorer.__mro__ if _builtin_name(base) and hasattr(base, "score")), None)


def _builtin_name(scorer: type) -> str:
    """Return the name of a built-in scorer's class, which is that of its module; empty for other classes."""
    package, _, name = scorer.__module__.rpartition(".")
    return name if package == "germane.scorers.metrics" else ""


def _takes_no_arguments(scorer: type) -> bool:
    try:
        inspect.signature(scorer).bind()
    except (TypeError, ValueError):
        return False
    return True


@dataclass
class ScorerSet:
    """A process's scorers, created by :func:`build_scorers`. Close it on the event loop that it was used on."""

    scorers: tuple[Scorer, ...] = ()
    judge: Judge | None = None
    embedder: Embedder | None = None
    meter: UsageMeter = field(default_factory=UsageMeter)
    """The usage of the judge and the embedder so far."""
    unavailable_reason: str | None = None
    """The reason nothing can be scored, in one sentence; None if there are scorers."""
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list, repr=False)
    rate_limiter: RateLimiter | None = field(default=None, repr=False)
    """Limits the judge's requests to a server."""

    @property
    def budget_exhausted_until(self) -> datetime | None:
        """The time in UTC when budget is available again; None if the budget is not exhausted or not set."""
        return None if self.rate_limiter is None else self.rate_limiter.budget_exhausted_until

    def stop_waiting(self) -> None:
        """Reject requests that are waiting for the rate limiter. Call this on the event loop that scores."""
        if self.rate_limiter is not None:
            self.rate_limiter.stop_waiting()

    async def check_judge(self) -> None:
        """Send a minimal request to the judge, if any.

        Only the judge's server knows whether the key and model are valid.

        Raises:
            ScoringError: the judge did not reply.
        """
        if self.judge is not None:
            is_local = self.judge.model.startswith(f"{LOCAL}:")
            await self.judge.ask([CHECK_MESSAGE], max_tokens=LOCAL_CHECK_TOKENS if is_local else MAX_REPLY_TOKENS)

    async def aclose(self) -> None:
        """Close connections and stop the embedded server. Idempotent."""
        while self.closers:
            await self.closers.pop()()


def build_scorers(
    settings: Settings,
    scorers: Sequence[object] | None = None,
    *,
    rate_limiter: RateLimiter | None = None,
) -> ScorerSet:
    """Build the scorers named in the settings, or the default scorers.

    Imports the modules in the ``imports`` setting, and logs a warning for each user-defined scorer with the name of a
    built-in one. No connection is opened and no process is started before the first score. ``scorers`` are names,
    scoring functions, scorers or scorer classes to use instead of those in the settings. The rate limiter, which limits
    the judge's requests to a server, is closed with the scorers.

    Raises:
        SettingsError: a scorer is unknown, cannot be loaded, or needs a judge or embedder that is not configured; a
            module cannot be imported; or there are options for an unknown scorer.
        UsageError: an item of ``scorers`` is not a scorer.
        ModelError: the weights of an embedded model are missing or corrupt.
    """
    import_modules(settings.imports)
    for conflict in find_name_conflicts():
        if conflict not in _logged_conflicts:
            _logged_conflicts.add(conflict)
            log.warning("%s", conflict)

    selected = default_scorer_names(settings) if scorers is None else scorers
    if not selected:
        if scorers is not None:
            return ScorerSet()
        if settings.scorers is not None:
            return ScorerSet(unavailable_reason="nothing will be scored: the scorers setting is empty")
        reason = (
            "nothing will be scored, because neither a judge nor an embedder is configured. Set OPENAI_API_KEY, or "
            f"OPENAI_BASE_URL for your own server, for answer_relevancy; or {install_command('local')} for "
            "question_answer_similarity and noncommittal"
        )
        log.warning("%s", reason)
        return ScorerSet(unavailable_reason=reason)

    factory = ScorerFactory(settings, rate_limiter)
    resolved = {id(scorer): scorer for scorer in map(factory.resolve, selected)}
    for name in settings.scorer_options:
        if name not in BUILTIN_SCORER_NAMES:
            known = ", ".join(BUILTIN_SCORER_NAMES)
            raise SettingsError(f"setting scorer_options: {name!r} is not a built-in scorer; built-in scorers: {known}")
    judge, embedder = factory.models_in_use
    return ScorerSet(
        tuple(resolved.values()),
        judge,
        embedder,
        meter=factory.meter,
        closers=factory.closers,
        rate_limiter=rate_limiter,
    )


def default_scorer_names(settings: Settings) -> tuple[str, ...]:
    """Return the names of the scorers in the settings, or the defaults for the configured judge and the installed
    extras.
    """
    if settings.scorers is not None:
        return settings.scorers
    if settings.has_server or settings.judge == LOCAL:
        return ("answer_relevancy",)
    return ("question_answer_similarity", "noncommittal") if is_local_installed() else ()
