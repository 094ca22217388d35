"""Base classes for scorers that use a judge, and the session of judge requests for one score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, Unpack

from germane.exchange import Exchange, Message
from germane.score import Score, UnscoredReason, band_of
from germane.scorers.base.fingerprint import fingerprint, fingerprint_name
from germane.scorers.base.phrases import words_in
from germane.scorers.base.protocols import MAX_REPLY_TOKENS, Embedder, Judge, JudgeOptions, Reply, ScorerModels
from germane.scorers.base.reply_parser import UnreadableReply, is_placeholder, parse_json_object
from germane.scorers.base.text import ONLY_QUESTION_ECHO, has_letters, split_words
from germane.scorers.prompting.prompt import MAX_ANSWER_BYTES, Prompt, PromptInputs, build_prompt_inputs, load_prompt
from germane.scorers.refusals.judge_replies import find_statement_problem, is_reason

RETRY_MESSAGE = Message(
    "user", "That was not the JSON asked for. Reply with that JSON object only, nothing before or after it."
)
_MAX_QUOTED_CHARACTERS = 2_000
"""Maximum length of an unreadable reply that is sent back. Longer ones are truncated."""
_NOTHING_WORDS = words_in("nothing")
"""Words for "nothing". A text that consists only of them means that there is nothing to quote."""
_MIN_STATEMENT_WORDS = 3
_QUOTED_WORDS = 5
"""Number of words at the start of a text to look for. If the prompt contains them in this order, the text is a
quotation."""
Value = TypeVar("Value")
ParsedReply = TypeVar("ParsedReply")


class JudgeSession:
    """The sequence of judge requests for one score."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.replies: list[Reply] = []
        """All replies, in order."""

    async def ask(self, messages: Sequence[Message], **options: Unpack[JudgeOptions]) -> Reply:
        """Send a request, record the reply and return it; see :meth:`Judge.ask` for the options and errors."""
        reply = await self.judge.ask(messages, **options)
        self.replies.append(reply)
        return reply

    async def ask_again(
        self, messages: Sequence[Message], reply: Reply, request: Message, **options: Unpack[JudgeOptions]
    ) -> Reply:
        """Send an unreadable reply back with a request to correct it, and return the new reply."""
        quoted = Message("assistant", reply.texts[0][:_MAX_QUOTED_CHARACTERS])
        return await self.ask([*messages, quoted, request], **options)

    async def ask_json(
        self,
        prompt: Prompt,
        values: Mapping[str, str],
        schema: Mapping[str, Any],
        parse: Callable[[Mapping[str, Any]], Value],
        *,
        max_tokens: int = MAX_REPLY_TOKENS,
        top_tokens: int = 0,
    ) -> Value:
        """Request a JSON object, and return the result of ``parse``. If the reply is unreadable, retry once.

        The parsed reply is the last item in ``replies``. For ``top_tokens``, see :meth:`Judge.ask`.

        Raises:
            ScoringError: the judge did not reply, or its second reply is also unreadable (``unparsable`` or
                ``out_of_range``).
        """
        messages = prompt.fill(**values)
        options: JudgeOptions = {"schema": schema, "max_tokens": max_tokens}
        if top_tokens:
            options["top_tokens"] = top_tokens
        reply = await self.ask(messages, **options)
        try:
            return parse(_parse_judged_object(reply, values, schema))
        except UnreadableReply:
            reply = await self.ask_again(messages, reply, RETRY_MESSAGE, **options)
            return parse(_parse_judged_object(reply, values, schema))

    @property
    def model(self) -> str:
        """The last model name that the server reported, or the configured name if the server reported none."""
        return next((reply.model for reply in reversed(self.replies) if reply.model), self.judge.model)

    @property
    def cost(self) -> float | None:
        """Total cost in US dollars; None if no reply has a known cost."""
        costs = [reply.cost for reply in self.replies if reply.cost is not None]
        return sum(costs) if costs else None

    def tokens(self, kind: Literal["input_tokens", "output_tokens"]) -> int | None:
        """Return the total number of tokens in the replies that report it, or None if no reply does."""
        counts = [count for reply in self.replies if (count := getattr(reply, kind)) is not None]
        return sum(counts) if counts else None


def _parse_judged_object(reply: Reply, values: Mapping[str, str], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON object in a judge's reply that judges the texts in the prompt. It may be a refusal instead."""
    members = parse_json_object(reply.texts[0])
    require_judgment(members, values, _prose_members(schema))
    return members


def require_judgment(members: Any, shown: Mapping[str, str], prose: Collection[str] = ()) -> None:
    """Check that the texts in a judge's JSON object are about the texts in the prompt.

    Each text must share a word with the texts in the prompt, or evaluate them. Among the requested ``prose`` members of
    an object, one such text is enough, and a text of one or two words is accepted. Unless it is a quotation, no text
    may be a refusal or an error message.

    Raises:
        UnreadableReply: a text does not meet these conditions; ``judge_refused`` if it is a refusal.
    """
    groups = list(_text_groups(members, prose))
    texts = tuple(text for name, text in shown.items() if name != "fence")
    words = f" {' '.join(split_words(' '.join(texts)))} " if groups else ""

    def is_quoted(text: str) -> bool:
        return f" {' '.join(split_words(text)[:_QUOTED_WORDS])} " in words

    for name, group in groups:
        stated = [text for text in group if not _says_nothing(text)]
        original = [text for text in stated if not is_quoted(text)]
        for text in original:
            if problem := find_statement_problem(text, *texts):
                reason = UnscoredReason.JUDGE_REFUSED if problem == "refusal" else UnscoredReason.UNPARSABLE
                raise UnreadableReply(f"the reply contains this {problem} instead of a judgment: {text!r:.80}", reason)
        if name in prose and any(len(split_words(text)) < _MIN_STATEMENT_WORDS for text in stated):
            continue
        if texts and stated and len(original) == len(stated) and not any(is_reason(text, *texts) for text in stated):
            raise UnreadableReply(f"the reply is not about the texts: {stated[0]!r:.80}")


def _text_groups(value: Any, prose: Collection[str], name: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield the texts of a JSON value in named groups: one for an object's prose, and one per other member."""
    if isinstance(value, Mapping):
        texts = {member: text for member, text in value.items() if isinstance(text, str)}
        if requested := [member for member in texts if member in prose]:
            yield requested[0], [texts[member] for member in requested]
        yield from ((member, [text]) for member, text in texts.items() if member not in prose)
        for member, item in value.items():
            yield from _text_groups(item, prose, member) if not isinstance(item, str) else ()
    elif isinstance(value, list):
        if texts_of_list := [item for item in value if isinstance(item, str)]:
            yield name, texts_of_list
        for item in value:
            yield from _text_groups(item, prose, name) if not isinstance(item, str) else ()


def _says_nothing(text: str) -> bool:
    """Return whether a text has no content: a placeholder, a number, or a statement that there is no quotation."""
    words = split_words(text)
    return is_placeholder(text) or not has_letters(text) or all(word in _NOTHING_WORDS for word in words)


def _prose_members(schema: Any) -> frozenset[str]:
    """Return the names of a schema's members that are free texts or lists of free texts."""
    if not isinstance(schema, Mapping):
        return frozenset()
    names = set[str]()
    for name, member in (schema.get("properties") or {}).items():
        item = member.get("items", member)
        if item.get("type") == "string" and "enum" not in item:
            names.add(name)
        names |= _prose_members(item)
    return frozenset(names)


class JudgeScorer(ABC):
    """A base class for scorers that use a judge.

    The scorer's ``fingerprint`` includes the configured model name. The fingerprint of each score includes the model
    name that the server reported.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    """The version of the method. Increase it whenever the same replies would produce a different value."""
    requires = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    def __init__(self, judge: Judge, embedder: Embedder | None = None) -> None:
        self.judge = judge
        self.embedder = embedder
        self._fingerprints: dict[tuple[object, ...], str] = {}

    @classmethod
    def build(cls, models: ScorerModels, options: Mapping[str, Any]) -> Self:
        """Build the scorer from the settings. Scorers with other models override this method."""
        return cls(models.judge, **options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.judge!r})"

    @abstractmethod
    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange.

        Raises:
            ScoringError: the exchange cannot be scored. The error states the reason.
        """

    @abstractmethod
    def prompts(self) -> Sequence[Prompt]:
        """Return all prompts that the scorer may use."""

    def parameters(self) -> Mapping[str, object]:
        """Return the parameters, other than the prompts, that affect scores, such as options, schemas and limits.

        The values must be JSON-serializable.
        """
        return {}

    @property
    def fingerprint(self) -> str:
        """The scorer's fingerprint, which covers version, parameters, prompts, configured judge and embedder."""
        return self.fingerprint_for(self.judge.model)

    def fingerprint_for(self, model: str, **more: object) -> str:
        """Return the fingerprint for a model name that the server reported, with additional parameters."""
        key = (model, *sorted(more.items()))
        if key not in self._fingerprints:
            self._fingerprints[key] = fingerprint(
                scorer=fingerprint_name(self),
                version=self.version,
                parameters={**self.parameters(), **more},
                prompt="\0".join(prompt.text for prompt in self.prompts()),
                judge=model,
                embedder=self.embedder.model if self.embedder else None,
            )
        return self._fingerprints[key]

    async def build_zero_without_request(self, **fields: Any) -> Score:
        """Build a score of 0 that did not need a request. It includes the judge, so that trends do not mix models."""
        return self._build(0.0, await self.judge.identify(), **fields)

    def build_score(self, value: float, session: JudgeSession, **fields: Any) -> Score:
        """Build a score with the session's usage.

        ``fields`` are fields of :class:`Score`. The label defaults to the value's band.
        """
        return self._build(
            value,
            session.model,
            input_tokens=session.tokens("input_tokens"),
            output_tokens=session.tokens("output_tokens"),
            cost=session.cost,
            **{**fields, "details": {**fields.get("details", {}), "requests": len(session.replies)}},
        )

    def _build(self, value: float, model: str, **fields: Any) -> Score:
        fields.setdefault("label", band_of(value))
        if "fingerprint" not in fields:
            fields["fingerprint"] = self.fingerprint_for(model)
        embedder = self.embedder.model if self.embedder else None
        return Score(scorer=self.name, value=value, judge=model, embedder=embedder, **fields)


class SingleRequestScorer(JudgeScorer, Generic[ParsedReply]):
    """A base class for scorers with one schema and one prompt. The prompt has the same name as the scorer."""

    schema: ClassVar[Mapping[str, Any]]
    max_tokens: ClassVar[int] = MAX_REPLY_TOKENS

    def __init__(self, judge: Judge, *, remove_question_echo: bool = True) -> None:
        """Use a judge. ``remove_question_echo`` removes repetitions of the question from the answer first."""
        super().__init__(judge)
        self.remove_question_echo = remove_question_echo

    @abstractmethod
    def parse_reply(self, reply: Mapping[str, Any]) -> ParsedReply:
        """Parse the judge's JSON object.

        Raises:
            UnreadableReply: the object does not have the requested format.
        """

    @abstractmethod
    def score_reply(self, parsed: ParsedReply, session: JudgeSession, inputs: PromptInputs) -> Score:
        """Return the score for a parsed reply."""

    def prompts(self) -> Sequence[Prompt]:
        """Return the scorer's prompt."""
        return (load_prompt(self.name),)

    def parameters(self) -> Mapping[str, object]:
        """Return the options, the schema and the limits. They become part of the fingerprint."""
        return {
            "remove_copies": self.remove_question_echo,
            "schema": self.schema,
            "answer_limit": MAX_ANSWER_BYTES,
        }

    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange. ``details`` contains the judge's findings.

        Raises:
            ScoringError: the judge failed, or two consecutive replies are unreadable.
        """
        inputs = build_prompt_inputs(exchange, remove_echo=self.remove_question_echo, include_contexts=False)
        if inputs.is_only_question_echo:
            return await self.build_zero_without_request(explanation=ONLY_QUESTION_ECHO, details=inputs.details())
        session = JudgeSession(self.judge)
        parsed = await session.ask_json(
            load_prompt(self.name),
            inputs.template_values(),
            self.schema,
            self.parse_reply,
            max_tokens=self.max_tokens,
        )
        return self.score_reply(parsed, session, inputs)
