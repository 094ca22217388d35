"""What makes scorers out of settings: one judge and one embedder, made when the first scorer needs them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, cast

from germane import registry
from germane.errors import SettingsError, UsageError
from germane.scorers.base.protocols import Embedder, Judge, Scorer
from germane.scorers.factory.builtin import CATALOGUE
from germane.scorers.judge.client import Server
from germane.scorers.judge.coalescing import SharedJudge
from germane.scorers.judge.embedding_batcher import Batcher
from germane.scorers.judge.openai_embedder import OpenAIEmbedder
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.scorers.judge.prices import Meter, Prices
from germane.scorers.judge.rate_limit import Pace
from germane.scorers.plugins import CustomScorer, flaw_of, plugin, plugin_names
from germane.settings import DEFAULT_EMBEDDER, LOCAL, Settings

if TYPE_CHECKING:
    from germane.scorers.local.llm import LocalJudge
    from germane.scorers.local.minilm import MiniLM


class Maker:
    """Makes the scorers of one process. A part that several of them need is made once."""

    def __init__(self, settings: Settings, pace: Pace | None = None) -> None:
        self.settings = settings
        self.pace = pace
        self.closers: list[Callable[[], Awaitable[None]]] = [] if pace is None else [pace.aclose]
        """What is to be called at the end, last first."""
        self.meter = Meter()
        """What judge and embedder take."""
        self._made: dict[str, Scorer] = {}

    def take(self, given: object) -> Scorer:
        """Return the scorer that is meant by a name, a function of an exchange, or a scorer itself.

        Raises:
            UsageError: it is none of these.
            SettingsError, ModelError: see :meth:`scorer`.
        """
        if isinstance(given, str):
            return self.scorer(given)
        if inspect.isclass(given):
            raise UsageError(f"the class {given.__qualname__} is no scorer: make one of it")
        if not hasattr(given, "score") and callable(given):
            known = registry.declaration_of(given)
            return self.scorer(known.name) if known else self._custom(registry.declare(given))
        if flaw := flaw_of(given):
            raise UsageError(f"{given!r:.100} is no scorer: {flaw}")
        return cast("Scorer", given)

    def scorer(self, name: str) -> Scorer:
        """Return the scorer of that name, always the same one.

        Raises:
            SettingsError: there is none, its options are wrong, or it needs a judge or embedder that is not configured.
            ModelError: the weights of an embedded model are missing or are not the ones they should be.
        """
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    @cached_property
    def judge(self) -> Judge:
        """The judge of the settings, for many callers at once."""
        judge = SharedJudge(self._local_judge() if self.settings.judge == LOCAL else self._server_judge(), self.meter)
        self.closers.append(judge.aclose)
        return judge

    @cached_property
    def embedder(self) -> Batcher:
        """The embedder of the settings, for many callers at once."""
        embedder = self._embedder()
        batcher = Batcher(embedder)
        self.closers += [embedder.aclose, batcher.aclose]
        return batcher

    @property
    def made(self) -> tuple[Judge | None, Embedder | None]:
        """Judge and embedder, as far as a scorer needed them."""
        return self.__dict__.get("judge"), self.__dict__.get("embedder")

    def _make(self, name: str) -> Scorer:
        make = CATALOGUE.get(name)
        if make is None:
            return self._of_others(name)
        try:
            return make(self, self.settings.scorer_options.get(name, {}))
        except (TypeError, ValueError) as error:
            if isinstance(error, SettingsError):
                raise
            raise SettingsError(f"setting scorer_options.{name}: {error}") from None

    def _of_others(self, name: str) -> Scorer:
        """Return a scorer that is not germane's own: a declared function, else one of an installed package."""
        declaration = registry.declared(name)
        found = CustomScorer(declaration) if declaration else plugin(name)
        if found is None:
            known = ", ".join(dict.fromkeys([*CATALOGUE, *registry.names(), *plugin_names()]))
            raise SettingsError(
                f"setting scorers: there is no scorer {name!r}; there are {known}. The setting imports names the "
                "modules in which yours are declared"
            )
        if self.settings.scorer_options.get(name):
            raise SettingsError(f"setting scorer_options.{name}: a scorer of your own takes no options")
        if isinstance(found, CustomScorer):
            self.closers.append(found.aclose)
        return found

    def _custom(self, declaration: registry.Declaration) -> CustomScorer:
        scorer = CustomScorer(declaration)
        self.closers.append(scorer.aclose)
        return scorer

    def _server_judge(self) -> OpenAIJudge:
        server = self._server(f"the judge {self.settings.judge!r}")
        return OpenAIJudge(
            self.settings.judge,
            server,
            concurrency=self.settings.concurrency,
            prices=Prices(self.settings.prices),
            pace=self.pace,
        )

    def _local_judge(self) -> LocalJudge:
        from germane.scorers.local.llm import LocalJudge

        settings = self.settings
        return LocalJudge(settings.local_llm, questions=settings.questions, timeout=settings.judge_timeout)

    def _embedder(self) -> MiniLM | OpenAIEmbedder:
        at_server = self.settings.has_server and self.settings.judge != LOCAL
        name = self.settings.embedder or (DEFAULT_EMBEDDER if at_server else LOCAL)
        if name == LOCAL:
            from germane.scorers.local.minilm import MiniLM

            return MiniLM()
        return OpenAIEmbedder(name, self._server(f"the embedder {name!r}"), meter=self.meter)

    def _server(self, what: str) -> Server:
        settings = self.settings
        if not settings.has_server:
            raise SettingsError(
                f"{what} needs a server: set OPENAI_API_KEY, or OPENAI_BASE_URL for one that needs no key"
            )
        return Server(
            api_key=settings.api_key.get_secret_value() if settings.api_key else None,
            base_url=settings.base_url.get_secret_value() if settings.base_url else None,
            timeout=settings.judge_timeout,
        )
