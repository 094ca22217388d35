"""The question of an exchange: the argument used by default, and setting the question in a handler."""

from __future__ import annotations

import inspect
from enum import StrEnum
from itertools import pairwise
from typing import Any

import pytest
from tests.cases import each

import germane
from germane.tracer.handler import QuestionArgument

CONVENTIONAL_NAMES = ["question", "query", "prompt", "message", "input", "user_input"]
OBSERVE_OPTIONS = [
    "route", "question", "answer", "contexts", "history", "attributes", "stream", "chunk", "join", "redact", "capture",
]  # fmt: skip
RETRIEVAL_OPTIONS = ["source", "query", "contexts", "content", "id", "score"]
SECRET = "4111-1111"


def find_question(function: Any, *args: Any, **kwargs: Any) -> str | None:
    """Return the question captured from a call to the function."""
    return QuestionArgument(inspect.signature(function))(args, kwargs)


def function_with_parameters(parameters: str) -> Any:
    """Create a function with these parameters."""
    return eval(f"lambda {parameters}: None")


class TestConventionalName:
    """Without a selector, the parameter with a conventional name is the question."""

    @each("name", CONVENTIONAL_NAMES)
    def test_a_question_that_is_passed_by_position_is_found(self, name: str) -> None:
        """The parameter is found wherever it is in the signature."""
        function = function_with_parameters(f"tenant, {name}, language='en'")

        assert find_question(function, "acme", "Why?") == "Why?"

    @each("name", CONVENTIONAL_NAMES)
    def test_a_question_that_is_passed_by_keyword_is_found(self, name: str) -> None:
        """The order of the keyword arguments does not matter."""
        function = function_with_parameters(f"tenant, {name}")

        assert find_question(function, tenant="acme", **{name: "Why?"}) == "Why?"

    @each("name", CONVENTIONAL_NAMES)
    def test_the_default_value_of_an_omitted_question_is_found(self, name: str) -> None:
        """If the argument is omitted, the question is its default value."""
        function = function_with_parameters(f"tenant, {name}='Why?'")

        assert find_question(function, "acme") == "Why?"

    @each("name", CONVENTIONAL_NAMES)
    def test_a_keyword_only_question_after_variable_arguments_is_found(self, name: str) -> None:
        """Extra positional arguments are not mistaken for a keyword-only question."""
        function = function_with_parameters(f"*texts, {name}")

        assert find_question(function, "a", "b", **{name: "Why?"}) == "Why?"

    @each(("first", "second"), list(pairwise(CONVENTIONAL_NAMES)))
    def test_the_first_conventional_parameter_name_takes_precedence(self, first: str, second: str) -> None:
        """The order of the names decides, not the order of the parameters."""
        function = function_with_parameters(f"{second}, {first}")

        assert find_question(function, "other", "Why?") == "Why?"

    @each("value", [None, 7, b"bytes", {"id": "1"}, ["Why?"], "", " ", "sk-0123456789abcdef"])
    def test_an_argument_with_a_conventional_name_that_is_not_a_question_is_skipped(self, value: Any) -> None:
        """A parameter with a conventional name is skipped if its value is not a text, blank, or a key."""
        assert find_question(lambda question, query: None, value, "Why?") == "Why?"
        assert find_question(lambda question, topic: None, value, "shoes") == "shoes"
        assert find_question(lambda question, lang: None, value, "en") is None

    def test_a_question_argument_of_a_method_is_found(self, traced: Any) -> None:
        """Methods, class methods and static methods find the parameter in the arguments of the call."""

        class Service:
            @germane.observe
            def ask(self, tenant: str, question: str) -> str:
                return "a"

            @germane.observe
            @classmethod
            def ask_class(cls, tenant: str, question: str) -> str:
                return "a"

            @germane.observe
            @staticmethod
            def ask_static(tenant: str, question: str) -> str:
                return "a"

        Service().ask("acme", "Why?")
        Service.ask_class("acme", question="Why?")
        Service.ask_static("acme", "Why?")

        assert [exchange.question for exchange in traced.exchanges] == ["Why?"] * 3


class TestFirstText:
    """Without a conventional name, the first str argument is the question."""

    def test_the_first_str_argument_is_the_question_without_a_conventional_name(self) -> None:
        """Other values are skipped, in positional and in keyword arguments."""
        assert find_question(lambda k, text, lang: None, 3, "Why?", "en") == "Why?"
        assert find_question(lambda k, text, lang: None, k=3, lang="en", text="Why?") == "Why?"

    def test_the_first_extra_positional_argument_can_be_the_question(self) -> None:
        """``*args`` counts, even if it has a conventional name."""
        assert find_question(lambda *args: None, 3, "Why?") == "Why?"
        assert find_question(lambda *question: None, "Why?", "b") == "Why?"

    def test_an_extra_keyword_argument_can_be_the_question(self) -> None:
        """``**kwargs`` counts after the declared parameters."""
        assert find_question(lambda k, **more: None, k=3, text="Why?") == "Why?"

    @each("name", CONVENTIONAL_NAMES)
    @each("parameters", ["**more", "*question, **more", "k=3, **message"])
    def test_an_extra_keyword_argument_with_a_conventional_name_is_the_question(
        self, parameters: str, name: str
    ) -> None:
        """It is the question, even if other texts are passed before it."""
        function = function_with_parameters(parameters)

        assert find_question(function, text="t", **{name: "Why?"}) == "Why?"
        assert QuestionArgument(None)((), {"text": "t", name: "Why?"}) == "Why?"

    def test_declared_parameters_take_precedence_over_extra_keyword_arguments(self) -> None:
        """The signature names the question."""
        assert find_question(lambda query, **more: None, "Why?", question="other") == "Why?"

    def test_the_first_text_is_the_question_of_a_function_without_a_signature(self) -> None:
        """Some built-in functions do not have a signature."""
        assert QuestionArgument(None)((3, "Why?"), {}) == "Why?"

    def test_a_call_without_text_arguments_has_no_question(self) -> None:
        """A call without a str argument has no question."""
        assert find_question(lambda k, flag=False: None, 3) is None

    @pytest.mark.parametrize("name", CONVENTIONAL_NAMES)
    @pytest.mark.parametrize("value", [["Why?"], {"id": "1"}, object(), 3])
    @pytest.mark.parametrize("options", [{}, {"attributes": {"a": lambda call: None}}])
    def test_an_argument_with_a_conventional_name_but_no_text_is_reported_once(
        self, traced: Any, caplog: pytest.LogCaptureFixture, name: str, value: Any, options: Any
    ) -> None:
        """The warning names the parameter and the option, unless the handler or a selector provides the question."""
        parameters = inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)])

        def reply(*_args: Any) -> str:
            return "a"

        def reply_to_a_set_question(*_args: Any) -> str:
            germane.set_question("Why?")
            return "a"

        for function in (reply, reply_to_a_set_question):
            function.__signature__ = parameters  # type: ignore[attr-defined]
        germane.observe(route="set", **options)(reply_to_a_set_question)(value)
        germane.observe(route="selected", question=lambda: "Why?", **options)(reply)(value)
        assert caplog.messages == []

        route = f"ask {name} {type(value).__name__} {len(options)}"  # a warning is logged once per process
        ask = germane.observe(route=route, **options)(reply)
        ask(value)
        ask(value)

        (message,) = caplog.messages
        assert (
            f"question of {route}: '{name}' is not a text that can be a question; select the text with question="
            in message
        )
        assert "is not a text" in str((traced.spans[-1].attributes or {})["germane.capture.error"])


class TestSetQuestion:
    """``germane.set_question`` sets the question of the current exchange."""

    def test_set_question_replaces_the_captured_question(self, traced: Any) -> None:
        """The exchange and the span contain the text that the handler set."""

        @germane.observe
        def ask(body: str) -> str:
            germane.set_question("Why?")
            return "a"

        ask('{"question": "Why?"}')

        assert traced.exchange.question == "Why?"
        assert traced.attributes()["input.value"] == "Why?"

    def test_a_question_set_in_a_nested_handler_belongs_to_the_outermost_exchange(self, traced: Any) -> None:
        """Nested handlers yield one exchange, which gets the question."""

        @germane.observe
        def inner(body: str) -> str:
            germane.set_question("Why?")
            return "a"

        @germane.observe(route="outer")
        def outer(body: str) -> str:
            return inner("inner body")

        outer("outer body")

        assert (traced.exchange.route, traced.exchange.question) == ("outer", "Why?")

    def test_set_question_outside_a_handler_has_no_effect(self, traced: Any) -> None:
        """There is no exchange to change, and nothing is raised."""
        germane.set_question("Why?")

        assert (traced.exchanges, traced.spans) == ([], [])

    def test_a_question_set_by_the_handler_is_redacted(self, unconnected: Any) -> None:
        """Redaction applies to a question that the handler sets, even in a nested handler with its own redaction."""
        traced = unconnected.connect(redact=lambda text: text.replace("Ann", "****"))

        @germane.observe(redact=lambda text: text.replace(SECRET, "****"))
        def inner(body: str) -> str:
            germane.set_question(f"Ann: {SECRET}?")
            return "a"

        germane.observe(lambda body: inner(body))("body")

        assert traced.exchange.question == "****: ****?"
        assert SECRET not in str([span.attributes for span in traced.spans])

    def test_a_question_set_by_the_handler_is_truncated(self, unconnected: Any) -> None:
        """``max_text_length`` applies to a question that the handler sets."""
        traced = unconnected.connect(max_text_length=100)

        @germane.observe
        def ask(body: str) -> str:
            germane.set_question("x" * 1000)
            return "a"

        ask("body")

        assert traced.exchange.question == "x" * 100

    def test_setting_an_invalid_question_keeps_the_captured_question(self, traced: Any) -> None:
        """A value that is not text is rejected without an error in the handler."""

        @germane.observe
        def ask(question: str) -> str:
            germane.set_question(object())  # type: ignore[arg-type]
            return "a"

        assert ask("Why?") == "a"
        assert traced.exchange.question == "Why?"


@each(("decorator", "options"), [(germane.observe, OBSERVE_OPTIONS), (germane.retrieval, RETRIEVAL_OPTIONS)])
def test_the_signature_of_the_decorator_lists_its_options(decorator: Any, options: list[str]) -> None:
    """Editors and ``help()`` show each option as a keyword-only parameter, not ``**options``."""
    function, *parameters = inspect.signature(decorator).parameters.values()

    assert function.kind is function.POSITIONAL_ONLY
    assert [parameter.name for parameter in parameters] == options
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}
    assert {parameter.default for parameter in parameters} == {None}


class Language(StrEnum):
    """A str enum, whose members are not questions."""

    ENGLISH = "en"


class TestSeveralTexts:
    """If several arguments are text, a warning says which one is used as the question."""

    @each("name", [*CONVENTIONAL_NAMES, "other"])
    def test_an_enum_member_is_not_the_question(self, name: str) -> None:
        """An enum member selects an option, whatever its parameter is called."""
        function = function_with_parameters(f"{name}, text")

        assert find_question(function, Language.ENGLISH, "Why?") == "Why?"
        assert find_question(function, text="Why?", **{name: Language.ENGLISH}) == "Why?"
        assert find_question(function, Language.ENGLISH, None) is None

    @pytest.mark.parametrize(
        ("parameters", "taken", "other"),
        [
            ("title, body", "title", "body"),
            ("prompt, query", "query", "prompt"),
            ("*texts", "argument 1", "argument 2"),
        ],
    )
    def test_an_ambiguous_choice_among_several_texts_is_logged_once_per_handler(
        self, traced: Any, caplog: pytest.LogCaptureFixture, parameters: str, taken: str, other: str
    ) -> None:
        """The warning names the parameter that was used, and the others."""
        for number in range(2):
            route = f"{number} choosing {parameters}"
            ask = germane.observe(route=route)(eval(f"lambda {parameters}: 'a'"))
            for _ in range(3):
                ask("Why?", "How?")

        expected = f"is '{taken}', not {other}"
        assert [expected in record.getMessage() for record in caplog.records] == [True, True]

    def test_one_argument_with_a_conventional_name_among_other_texts_is_not_ambiguous(
        self, traced: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Nothing is logged if exactly one parameter has a conventional name, or if there is only one text."""
        germane.observe(lambda tenant, question: "a")("acme", "Why?")
        germane.observe(lambda question, **options: "a")("Why?", prompt="Be brief.")
        germane.observe(lambda k, text, language: "a")(3, "Why?", Language.ENGLISH)

        assert caplog.records == []

    @pytest.mark.parametrize("value", [{"id": "1"}, ["Why?"], Language.ENGLISH])
    def test_using_another_text_instead_of_a_conventional_parameter_is_logged_once(
        self, traced: Any, caplog: pytest.LogCaptureFixture, value: Any
    ) -> None:
        """If ``question`` is not text, the only other text is the question, and a warning names both."""
        ask = germane.observe(route=f"stand-in for {value}")(lambda question, title: "a")
        for _ in range(2):
            ask(value, "Title")

        assert [exchange.question for exchange in traced.exchanges] == ["Title", "Title"]
        (record,) = caplog.records
        assert "is 'title', not question" in record.getMessage()

    def test_using_the_next_conventional_parameter_is_not_logged(
        self, traced: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Nothing is logged if another parameter with a conventional name is text, or if ``question`` is not given."""
        germane.observe(lambda message, prompt="Why?": "a")({"text": "How?"})
        germane.observe(lambda text, question=None: "a")("Why?")

        assert [exchange.question for exchange in traced.exchanges] == ["Why?", "Why?"]
        assert caplog.records == []
