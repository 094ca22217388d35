"""Setting types and their validation: secrets, URLs, lists and nested settings."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from datetime import UTC, tzinfo
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, SecretStr, model_validator
from pydantic_settings import NoDecode

from germane.errors import SettingsError
from germane.exchange import Status

DAY = 86_400
"""Seconds."""
MIN_TOKEN_LENGTH = 16
"""Minimum number of characters in a token, chosen to make brute-force attacks infeasible."""
_Item = TypeVar("_Item")
_REFERENCE_PREFIXES = ("env:", "file:")


def resolve_secret(reference: str) -> str:
    """Read the secret from ``env:NAME`` or ``file:/path``. Call this on every use, because secrets can be rotated.

    Raises:
        SettingsError: The variable or file is missing, unreadable or empty.
    """
    try:
        secret = _dereference(reference).strip()
        secret.encode()
    except UnicodeEncodeError:
        raise SettingsError(f"{reference} is not UTF-8") from None
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if not secret:
        raise SettingsError(f"{reference} is empty")
    return secret


def resolve_url(reference: str) -> str:
    """Read the URL from ``env:NAME`` or ``file:/path``.

    Raises:
        SettingsError: The variable or file is missing, unreadable, or does not contain an HTTP URL.
    """
    url = resolve_secret(reference)
    try:
        _validate_http_url(SecretStr(url))
    except ValueError as error:
        raise SettingsError(f"the value of {reference} {error}") from None
    return url


def redact_url(url: str) -> str:
    """Return a URL's scheme, host and port. The other parts are omitted, because they may be secret."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}/***"


def redact_reference(reference: str) -> str:
    """Return the redacted URL behind a secret reference, or the reference itself if the secret cannot be read."""
    try:
        return redact_url(resolve_url(reference))
    except SettingsError:
        return reference


def parse_token(token: str | SecretStr) -> SecretStr:
    """Validate a token that is passed in code. The rules are those of the ``dashboard_token`` setting.

    Raises:
        SettingsError: The token is too short, or contains characters that an HTTP header cannot carry.
    """
    try:
        return _validate_token(SecretStr(token) if isinstance(token, str) else token)
    except ValueError as error:
        raise SettingsError(f"the token {error}") from None


def matches_patterns(patterns: Collection[str], value: str | None) -> bool:
    """Return whether a value matches one of the patterns. Without patterns, all values match, including None."""
    return not patterns or (value is not None and any(fnmatchcase(value, pattern) for pattern in patterns))


def _dereference(value: str) -> str:
    if value.startswith("env:"):
        name = value.removeprefix("env:")
        if name not in os.environ:
            raise ValueError(f"the environment variable {name} is not set")
        return os.environ[name]
    if value.startswith("file:"):
        path = Path(value.removeprefix("file:"))
        try:  # is_file() itself raises for folders without permission and for names that are too long
            if not path.is_file():
                raise ValueError(f"the file {path} does not exist")
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"the file {path} cannot be read ({type(error).__name__})") from None
    return value


def _full_match(pattern: str, error: str) -> AfterValidator:
    """Return a validator that rejects strings and secrets that do not match a pattern."""

    def validate(value: Any) -> Any:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if not re.fullmatch(pattern, text, re.DOTALL):
            raise ValueError(error)
        return value

    return AfterValidator(validate)


def _read_secret(value: Any) -> Any:
    """Resolve ``env:NAME`` or ``file:/path``, and strip the trailing newline that editors and secret stores add."""
    return _dereference(value).strip() if isinstance(value, str) else value


def _validate_reference(value: str) -> str:
    prefix = next((prefix for prefix in _REFERENCE_PREFIXES if value.startswith(prefix)), None)
    if prefix is None or not value.removeprefix(prefix) or not value.isprintable():
        raise ValueError("must be a reference to the secret, env:NAME or file:/path, not the secret itself")
    return value


def _validate_token(value: SecretStr) -> SecretStr:
    token = value.get_secret_value()
    if len(token) < MIN_TOKEN_LENGTH or not re.fullmatch(r"[!-~]+", token):
        raise ValueError(f"must have at least {MIN_TOKEN_LENGTH} ASCII characters and no spaces")
    return value


def _validate_http_url(value: SecretStr) -> SecretStr:
    try:
        parts = urlsplit(value.get_secret_value())
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a malformed port or IPv6 address; the error's text may quote a password
        usable = False
    if not usable:
        raise ValueError("must start with http:// or https:// and contain a host")
    return value


def _validate_public_url(value: str) -> str:
    _validate_http_url(SecretStr(value))
    parts = urlsplit(value)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("must not contain a username, password or query parameters, because they may be secrets")
    return value


def _link_template(*fields: str) -> AfterValidator:
    """Accept only ids as placeholders, and only after the host, so that a link can never contain captured text."""
    allowed = " or ".join(f"{{{field}}}" for field in fields)

    def validate(value: str) -> str:
        _validate_http_url(SecretStr(value))
        placeholders = re.findall(r"{([^{}]*)}", value)
        rest = re.sub(r"{[^{}]*}", "", value)
        unsafe = not value.isprintable() or set('{} "<>') & set(rest) or "{" in urlsplit(value).netloc
        if unsafe or not placeholders or set(placeholders) - set(fields):
            raise ValueError(f"must contain {allowed} after its host, and no other placeholder")
        return value

    return AfterValidator(validate)


def parse_timezone(name: str) -> tzinfo:
    """Return a timezone. UTC needs no timezone data.

    Raises:
        ValueError: The timezone is unknown.
        OSError: The timezone data is unreadable.
    """
    return UTC if name == "UTC" else ZoneInfo(name)


def _validate_timezone(value: str) -> str:
    try:
        parse_timezone(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"must be a timezone such as Europe/Berlin, not {value!r:.80}; "
            "if the system has no timezone data, run: pip install tzdata"
        ) from None
    return value


Timezone = Annotated[str, AfterValidator(_validate_timezone)]
"""The name of a timezone."""


def _split_list(value: Any) -> Any:
    """Parse ``a,b`` as a list. Environment variables are strings, so lists in them are comma-separated."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Key = Annotated[
    SecretStr,
    BeforeValidator(_read_secret),
    _full_match(r"[ -~]+", "must be one line of ASCII characters, because it is sent in an HTTP header"),
]
Token = Annotated[SecretStr, BeforeValidator(_read_secret), AfterValidator(_validate_token)]
DatabaseURL = Annotated[
    str,
    BeforeValidator(_read_secret),
    _full_match(
        r"(sqlite|postgres|postgresql|postgresql\+psycopg):.*",
        "must be an SQLAlchemy URL for SQLite or PostgreSQL, such as sqlite:///germane.db",
    ),
]
SecretURL = Annotated[SecretStr, BeforeValidator(_read_secret), AfterValidator(_validate_http_url)]
ExchangeURL = Annotated[str, _link_template("id")]
TraceURL = Annotated[str, _link_template("trace_id", "span_id")]
PublicURL = Annotated[str, AfterValidator(_validate_public_url)]
CommaSeparated = Annotated[tuple[_Item, ...], NoDecode, BeforeValidator(_split_list)]
Names = CommaSeparated[str]
AllowedHosts = CommaSeparated[
    Annotated[
        str,
        _full_match(
            r"\*|[A-Za-z0-9._-]+", "must be a host name such as germane.example.com, without http:// and the port"
        ),
    ]
]
SecretReference = Annotated[str, AfterValidator(_validate_reference)]
"""``env:NAME`` or ``file:/path``; :func:`resolve_secret` reads it on each use."""
Dimension = Annotated[
    str,
    _full_match(
        r"route|model|prompt_version|attributes\.[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}",
        "must be model, prompt_version or attributes.NAME, where NAME consists of letters, digits and _ . : -",
    ),
]
Breakdowns = Annotated[
    CommaSeparated[Dimension],
    AfterValidator(lambda dimensions: tuple(name for name in dimensions if name != "route")),  # always a breakdown
]


def _validate_function_name(value: str) -> str:
    module, _, name = value.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise ValueError("must be a module and a function in it, such as myapp.sampling:is_odd")
    return value


FunctionName = Annotated[str, AfterValidator(_validate_function_name)]


class NestedSettings(BaseModel):
    """Settings that belong together, inside of :class:`Settings`. Immutable."""

    # Settings validates them, so that most programs never need the validators of the classes themselves.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Price(NestedSettings):
    """A model's price."""

    input: float = Field(ge=0, allow_inf_nan=False)
    """US dollars per million input tokens."""
    output: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """US dollars per million output tokens."""


class Budget(NestedSettings):
    """Limits on judge usage, shared by all processes on one database.

    Within these limits, germane selects the exchanges whose scores are most valuable.
    """

    requests_per_hour: int | None = Field(default=None, gt=0)
    """Judge requests per hour. Unused requests carry over to later hours of the same day (UTC)."""
    requests_per_day: int | None = Field(default=None, gt=0)
    """Judge requests per day (UTC)."""
    tokens_per_hour: int | None = Field(default=None, gt=0)
    """Input and output tokens of the judge per hour. Unused tokens carry over in the same way."""
    tokens_per_day: int | None = Field(default=None, gt=0)
    """Input and output tokens of the judge per day (UTC)."""
    usd_per_hour: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """US dollars per hour. Unused dollars carry over in the same way. Requires a price for the judge: see `prices`."""
    usd_per_day: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """US dollars per day (UTC). Requires a price for the judge: see `prices`."""

    @model_validator(mode="after")
    def _require_a_limit(self) -> Budget:
        if all(value is None for value in self.model_dump().values()):
            raise ValueError("must set at least one limit, such as requests_per_day")
        return self


class ExchangeFilter(NestedSettings):
    """A filter for exchanges. An exchange matches the filter if it meets every condition that is set."""

    routes: Names = ()
    """Route patterns, such as `support-*`. One of them must match."""
    status: CommaSeparated[Status] = ()
    """Handler statuses: `ok`, `error`, `cancelled`, `abandoned`. One of them must match."""
    attributes: dict[str, str] = Field(default_factory=dict)
    """Attribute value patterns, by attribute name. All must match."""
    predicate: FunctionName | None = None
    """A function, such as `myapp.sampling:is_odd`, that takes an exchange and returns whether it matches."""

    _no_condition_error: ClassVar[str] = "must set at least one condition, such as routes"

    @model_validator(mode="after")
    def _require_a_condition(self) -> ExchangeFilter:
        if not any(getattr(self, name) not in (None, (), {}) for name in type(self).model_fields):
            raise ValueError(self._no_condition_error)
        return self


class AlwaysScore(ExchangeFilter):
    """A filter for exchanges that are scored regardless of sampling."""

    feedback_below: float | None = Field(default=None, gt=0, le=1)
    """Matches exchanges that have a feedback label below this value."""


class Retention(NestedSettings):
    """Retention periods for captured data. Text is erased before scores are deleted."""

    text_days: float = Field(default=30, gt=0, le=36_500)
    """Days after which questions, answers, contexts and quotes from them are erased."""
    score_days: float = Field(default=400, gt=0, le=36_500)
    """Days after which exchanges, scores and counts are deleted."""
    max_size: ByteSize | None = Field(default=None, gt=0)
    """Database size, such as `5GB`, above which the oldest text, and then the oldest exchanges, are deleted early."""


def parse_archive_location(text: str) -> str:
    """Return the absolute path of a folder, or an ``s3://`` URL without a slash at the end.

    Raises:
        ValueError: The URL has no bucket, contains credentials or options, or its scheme is unsupported.
    """
    if "://" not in text:
        return str(Path(text).expanduser().absolute())
    url = urlsplit(text)
    if url.scheme != "s3" or not url.netloc or "@" in url.netloc or url.query or url.fragment:
        raise ValueError(
            "must be a folder or s3://BUCKET/PREFIX; credentials and the endpoint are read from AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL"
        )
    return text.rstrip("/")


class Archive(NestedSettings):
    """The archive, to which days are moved from the database. Requires the `archive` extra."""

    location: Annotated[str, Field(min_length=1), AfterValidator(parse_archive_location)]
    """Folder, or `s3://BUCKET/PREFIX`. For S3, credentials, region and endpoint are read from the environment
    variables of the AWS tools, such as `AWS_ACCESS_KEY_ID` and `AWS_ENDPOINT_URL`."""
    after_days: float = Field(default=35, gt=0, le=36_500)
    """Days after which a day is moved to the archive. Must be less than `retention.score_days`."""
    text: bool = False
    """Whether to archive questions, answers, contexts, explanations and comments that have not been erased by then.
    `retention.text_days` does not apply to text in the archive."""
