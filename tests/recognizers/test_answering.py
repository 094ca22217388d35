"""Which call of a model gave the answer, in traces with calls for other purposes."""

from __future__ import annotations

from dataclasses import replace
from json import dumps
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each
from tests.spans.samples import Node, node, parts, trace

from germane.recognizers import Recognized, Unreadable
from germane.recognizers.recognition import recognize

KIND = "openinference.span.kind"
QUESTION = "What is the refund policy?"
ANSWER = "Refunds are possible within 30 days of purchase with a receipt."
DOCUMENT = "Refunds: within 30 days."
SYSTEM = parts("system", f"Answer from these documents: {DOCUMENT}")


def chat(messages: list[dict[str, Any]], answer: str | None, **more: str) -> Node:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": dumps(messages), **more}
    if answer is not None:
        attributes["gen_ai.output.messages"] = dumps([parts("assistant", answer)])
    return node("chat", attributes, scope="opentelemetry.instrumentation.genai.openai")


def ask(prompt: str, answer: str) -> Node:
    return chat([parts("user", prompt)], answer)


def chain(asked: object, given: object, *children: Node, name: str = "chain") -> Node:
    texts = [value if isinstance(value, str) else dumps(value) for value in (asked, given)]
    return node(name, {KIND: "CHAIN", "input.value": texts[0], "output.value": texts[1]}, *children)


def retriever(*documents: str, query: str = QUESTION) -> Node:
    names = {f"retrieval.documents.{number}.document.content": text for number, text in enumerate(documents)}
    return node("retriever", {KIND: "RETRIEVER", "input.value": query, **names})


def read(*children: Node) -> tuple[str, str] | str:
    """Return question and answer of a request that consists of some calls, or the reason why it is unreadable."""
    result = recognize(trace("openinference.instrumentation.langchain", node("POST /ask", {}, *children)))
    assert result is not None
    return result.reason if isinstance(result, Unreadable) else (result.question, result.answer)


MAIN = chat([SYSTEM, parts("user", QUESTION)], ANSWER)
RAG = chain({"question": QUESTION}, ANSWER, retriever(DOCUMENT), ask(f"{DOCUMENT}\nQuestion: {QUESTION}", ANSWER))
AFTERWARDS = {
    "title": ask(f"Write a title.\nUser: {QUESTION}\nAssistant: {ANSWER}", "Refund policy"),
    "title on one line": ask(f"Write a title for: {QUESTION} / {ANSWER}", "Refund policy"),
    "follow-up questions": chat(
        [parts("system", "Suggest questions"), parts("user", QUESTION), parts("assistant", ANSWER)], '["How long?"]'
    ),
    "check": chat([parts("system", "Is it grounded?"), parts("user", f"Q: {QUESTION}\nA: {ANSWER}")], "yes"),
    "check of the answer alone": ask(f"Is this grounded? {ANSWER}", "yes"),
    "memory": chat([parts("system", "Extract facts"), parts("user", f"user: {QUESTION}\nbot: {ANSWER}")], "[]"),
}


@each("first", [MAIN, RAG])
@each("later", AFTERWARDS.values())
def test_a_later_call_that_processes_the_answer_does_not_replace_it(first: Node, later: Node) -> None:
    """The user saw the answer of the earlier call."""
    assert read(first, later) == (QUESTION, ANSWER)


@given(calls=st.lists(st.sampled_from(list(AFTERWARDS.values())), max_size=4))
def test_any_number_of_calls_can_process_the_answer(calls: list[Node]) -> None:
    """Their number and order do not matter."""
    assert read(MAIN, *calls) == (QUESTION, ANSWER)


@each(
    "later",
    [
        chain({"question": QUESTION, "answer": ANSWER}, "Refund policy", ask("Write a title.", "Refund policy")),
        chain(ANSWER, "yes", chat([parts("system", "Is it safe?"), parts("user", ANSWER)], "yes")),
        ask(QUESTION, "Refund policy"),
    ],
)
def test_the_call_that_received_the_documents_gave_the_answer(later: Node) -> None:
    """A later call without documents does not replace the answer of a chain that retrieved some."""
    assert read(RAG, later) == (QUESTION, ANSWER)


def test_a_later_call_gave_the_answer_if_only_it_received_the_documents() -> None:
    """A call that classifies the question comes before the retrieval."""
    router = chat([parts("system", "Which topic?"), parts("user", QUESTION)], "billing")

    assert read(router, retriever(DOCUMENT), ask(f"{DOCUMENT}\nQuestion: {QUESTION}", ANSWER)) == (QUESTION, ANSWER)


def test_a_grade_of_the_documents_is_not_the_answer() -> None:
    """The prompt of the answer may contain only an excerpt of the documents."""
    grade = ask(f"Is this relevant?\n{DOCUMENT}\n{QUESTION}", "yes")

    result = recognize(trace("shop", node("POST /ask", {}, retriever(DOCUMENT), grade, ask(QUESTION, ANSWER))))

    assert isinstance(result, Recognized)
    assert result.answer == ANSWER


@each(
    "calls",
    [
        (MAIN, chat([parts("system", "Write a title"), parts("user", QUESTION)], "Refund policy")),
        (chat([parts("system", "Is it safe?"), parts("user", QUESTION)], "safe"), MAIN),
        (MAIN, chat([parts("system", "Is it safe?"), parts("user", ANSWER)], "yes")),
        (
            node("support", {KIND: "AGENT"}, ask(QUESTION, ANSWER)),
            node("titler", {KIND: "AGENT"}, ask(QUESTION, "Refund policy")),
        ),
    ],
)
def test_a_few_words_are_not_the_answer_beside_a_sentence(calls: tuple[Node, ...]) -> None:
    """Classes, titles and verdicts are phrases."""
    assert read(*calls) == (QUESTION, ANSWER)


@each(
    "calls",
    [
        (ask(QUESTION, ANSWER), ask(QUESTION, "You get your money back.")),
        (MAIN, chat([SYSTEM, parts("user", QUESTION)], "Within 30 days, refunds are possible.")),
        (ask(QUESTION, "30 days"), ask(QUESTION, "a month")),
    ],
)
def test_two_replies_to_one_question_are_ambiguous(calls: tuple[Node, ...]) -> None:
    """If nothing says which reply the user saw, the trace is unreadable."""
    assert read(*calls) == "ambiguous"


@each(
    ("calls", "question"),
    [
        ((ask("and refunds??", QUESTION), ask(QUESTION, ANSWER)), "and refunds??"),
        (
            (
                ask("Rewrite the question.\nHistory: hi\nQuestion: and refunds\nStandalone question:", QUESTION),
                ask(f"Context: {DOCUMENT}\n\nQuestion: {QUESTION}", ANSWER),
            ),
            "and refunds",
        ),
        (
            (
                ask("and refunds??", "refund policy"),
                retriever(DOCUMENT, query="refund policy"),
                ask(f"{DOCUMENT}\nQuestion: refund policy", ANSWER),
            ),
            "and refunds??",
        ),
    ],
)
def test_a_rewritten_question_is_not_an_answer(calls: tuple[Node, ...], question: str) -> None:
    """Calls before the answer rewrite the question, which the user asked in other words."""
    assert read(*calls) == (question, ANSWER)


def test_a_summary_of_earlier_turns_does_not_provide_the_question() -> None:
    """A call that gets only earlier messages, up to the last answer, does not answer one of them."""
    before = [parts("user", "Do you ship?"), parts("assistant", "Yes.")]
    summary = "The user asked about shipping."
    root = node(
        "LangGraph",
        {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.input.messages": dumps([*before, parts("user", QUESTION)]),
        },
        chat([parts("system", "Summarize"), *before], summary),
        chat([parts("system", f"Summary: {summary}"), parts("user", QUESTION)], ANSWER),
    )

    assert read(root) == (QUESTION, ANSWER)


def test_documents_of_an_earlier_turn_are_not_contexts() -> None:
    """In a trace of a whole conversation, the contexts belong to the last turn."""
    before = [parts("user", "Dogs?"), parts("assistant", "Dogs are fine.")]
    session = node(
        "session",
        {},
        retriever("A document about dogs."),
        chat(before[:1], "Dogs are fine."),
        retriever("A document about cats."),
        chat([*before, parts("user", "Cats?")], "Cats are, too."),
    )

    result = recognize(trace("shop", session))

    assert isinstance(result, Recognized)
    assert (result.question, result.answer) == ("Cats?", "Cats are, too.")
    assert [context.text for context in result.contexts] == ["A document about cats."]


@each(
    ("asked", "given"),
    [
        ({"messages": [parts("user", QUESTION)], "task": "support"}, ANSWER),
        ({"messages": [parts("user", QUESTION)], "prompt": "You are a helpful assistant."}, ANSWER),
        ({"question": QUESTION}, {"message": "ok", "data": {"text": ANSWER}}),
        ({"question": QUESTION}, {"result": "success", "text": ANSWER}),
        ({"question": QUESTION}, "null"),
    ],
)
def test_texts_in_the_messages_of_a_model_call_are_preferred(asked: object, given: object) -> None:
    """General names, such as task or result, may mean something else."""
    call = chat([parts("system", "You are a helpful assistant."), parts("user", QUESTION)], ANSWER)

    assert read(chain(asked, given, call)) == (QUESTION, ANSWER)


@each("reply", ["Within 30 days\nWith a receipt", "- Within 30 days\n- With a receipt"])
def test_two_short_lines_are_not_a_phrase(reply: str) -> None:
    """They answer, unlike a title."""
    title = chat([parts("system", "Write a title"), parts("user", QUESTION)], "Refund policy")
    answer = chat([parts("system", "Be kind"), parts("user", QUESTION)], reply)

    assert read(answer, title) == (QUESTION, reply)
    assert read(title, answer) == (QUESTION, reply)


def test_an_empty_message_after_the_answer_is_not_the_answer() -> None:
    """A model may end with a message that only contains its reasoning."""
    messages = [parts("user", QUESTION), parts("assistant", ANSWER), parts("assistant", "")]

    assert read(chain({"question": QUESTION}, {"messages": messages})) == (QUESTION, ANSWER)


def test_metadata_of_an_output_does_not_contain_the_answer() -> None:
    """Components have names of their own, and metadata describes them."""
    output = {"metadata": {"answer": "from the cache"}, "generator": {"answer": ANSWER}}

    assert read(chain({"question": QUESTION}, output)) == (QUESTION, ANSWER)


def test_an_output_of_null_is_not_an_answer() -> None:
    """The chain of an interrupted stream records null, and the model's span may be lost."""
    assert read(chain(QUESTION, "null")) == "model_not_traced"
    assert read(chain(QUESTION, "null", ask(QUESTION, "null"))) == (QUESTION, "null")


@each("inner", [{"question": QUESTION}, {"input": ""}, {"text": "Hello", "language": "French"}])
def test_an_input_that_repeats_a_message_as_json_is_decoded(inner: dict[str, str]) -> None:
    """Some frameworks encode the input of a workflow as JSON, and record that as the user's message."""
    workflow = node(
        "workflow",
        {"gen_ai.operation.name": "invoke_workflow", "gen_ai.input.messages": dumps([parts("user", dumps(inner))])},
        ask(QUESTION, ANSWER),
    )

    assert read(workflow) == (QUESTION, ANSWER)


def test_a_truncated_object_representation_is_not_an_answer() -> None:
    """An event's representation may be cut to a maximum length."""
    event = "StopEvent(result=AgentOutput(response=ChatMessage(role=<MessageRole.ASSISTANT: 'assistant'>, blo..."

    assert read(chain(QUESTION, event, ask(QUESTION, ANSWER))) == (QUESTION, ANSWER)


@each("replies", [(QUESTION, ANSWER), (ANSWER, "Refund policy")])
def test_the_output_of_the_answering_component_is_the_answer_of_a_pipeline(replies: tuple[str, str]) -> None:
    """The output of a pipeline contains the replies of all its generators."""
    first, second = replies
    prompts = ("and refunds?", f"{DOCUMENT}\nQuestion: {QUESTION}")
    if second != ANSWER:
        prompts = (prompts[1], f"Write a title for {QUESTION}")
    calls = [ask(prompt, reply) for prompt, reply in zip(prompts, replies, strict=True)]
    asked = "and refunds?" if first == QUESTION else QUESTION
    output = {"a": {"replies": [first]}, "b": {"replies": [second]}}

    assert read(chain({"retriever": {"query": asked}}, output, retriever(DOCUMENT), *calls)) == (asked, ANSWER)


def test_the_reply_that_the_workflow_returned_is_the_answer() -> None:
    """If the outermost step returned the reply of one call, that call gave the answer."""
    root = chain(
        {"question": QUESTION},
        {"answer": "In short: 30 days."},
        chat([SYSTEM, parts("user", QUESTION)], ANSWER),
        ask(f"Shorten this: {ANSWER}", "In short: 30 days."),
        ask(f"Is this grounded? {ANSWER}", "yes"),
    )

    assert read(root) == (QUESTION, "In short: 30 days.")


def test_an_answer_can_equal_the_question() -> None:
    """An answer that equals the question is an answer if a model gave it."""
    assert read(chain("hello", "hello", ask("hello", "hello"))) == ("hello", "hello")
    assert read(chain("hello", "hello")) != ("hello", "hello")


def test_the_beginning_of_an_answer_of_a_failed_call_is_not_an_answer() -> None:
    """A stream that fails leaves a part of the answer. A later call that succeeds gave the answer."""
    failed = replace(chat([SYSTEM, parts("user", QUESTION)], "Refunds are"), status="ERROR")

    assert read(failed) == "call_failed"
    assert read(failed, MAIN) == (QUESTION, ANSWER)
    assert read(node("workflow", {KIND: "CHAIN"}, failed)) == "call_failed"


def test_a_call_that_combines_the_replies_of_others_gave_the_answer() -> None:
    """Summaries of each document, without the answer, are part of the prompt of the last call."""
    documents = (DOCUMENT, "Shipping takes five working days.")
    summaries = ("Refunds take up to 30 days.", "This says nothing about it.")
    steps = [
        ask(f"Summarize with respect to: {QUESTION}\n{text}", summary)
        for text, summary in zip(documents, summaries, strict=True)
    ]
    last = ask("Combine:\n" + "\n".join(summaries) + f"\n\nQuestion: {QUESTION}", ANSWER)

    assert read(retriever(*documents), *steps, last) == (QUESTION, ANSWER)


def test_a_summary_of_the_conversation_is_not_a_rewritten_question() -> None:
    """The prompt of the call that summarizes earlier messages does not contain the question."""
    history = [parts("user", "Hi, do you sell shoes?"), parts("assistant", "Yes, we do.")]
    summary = "The user asked about shoes."
    last = chat([parts("system", f"Summary:\n{summary}"), parts("user", QUESTION)], ANSWER)

    assert read(chat([parts("system", "Summarize."), *history], summary), last) == (QUESTION, ANSWER)
    assert read(ask("Summarize.\nUser: Hi, do you sell shoes?\nBot: Yes.", summary), last) == (QUESTION, ANSWER)


@each("label", ["Follow Up Input", "Follow-up question", "User message", "New question"])
def test_the_question_of_a_prompt_that_rewrites_it_is_the_labeled_one(label: str) -> None:
    """Prompts that ask for a standalone question contain the earlier messages, the question and two labels."""
    asked, rewritten = "And shoes?", "What is the refund policy for shoes?"
    prompt = f"Rephrase it.\n\nChat History:\nUser: Hi\n\n{label}: {asked}\nStandalone question:"

    assert read(ask(prompt, rewritten), chat([SYSTEM, parts("user", rewritten)], ANSWER)) == (asked, ANSWER)


@each(
    "prompt",
    [
        f"Context:\n{DOCUMENT}\n\nQuestion: {QUESTION}",
        f"Context information is below.\n---\n{DOCUMENT}\n---\nAnswer the query.\nQuery: {QUESTION}\nAnswer:",
        f"<documents>\n{DOCUMENT}\n</documents>\nUser question: {QUESTION}",
    ],
)
def test_the_question_of_a_prompt_with_documents_is_the_labeled_one_without_a_retriever(prompt: str) -> None:
    """If only the model's client is instrumented, labels show that a prompt is a template."""
    assert read(ask(prompt, ANSWER)) == (QUESTION, ANSWER)


def test_a_message_without_documents_is_the_question_whatever_labels_it_has() -> None:
    """A message is a template only if it has labels for the documents and for the question."""
    for message in ("Context: I bought shoes.\nCan I return them?", "I have two.\nQuestion: can I return one?"):
        assert read(ask(message, ANSWER)) == (message, ANSWER)


def test_a_step_that_repeats_the_prompt_of_its_call_does_not_know_the_question() -> None:
    """The AI SDK records a step around each call, with the call's prompt. The prompt may be a template."""

    def generate(prompt: str, answer: str) -> Node:
        inner = {"ai.operationId": "ai.generateText.doGenerate", "ai.response.text": answer}
        outer = {
            "ai.operationId": "ai.generateText",
            "ai.prompt": dumps({"prompt": prompt}),
            "ai.response.text": answer,
        }
        messages = dumps([{"role": "user", "content": [{"type": "text", "text": prompt}]}])
        call = node("ai.generateText.doGenerate", {**inner, "ai.prompt.messages": messages})
        return node("ai.generateText", outer, call, scope="ai")

    template = f"Use this: {DOCUMENT}\nQuestion: {QUESTION}"
    rewrite = generate(f"Rephrase.\nFollow up input: And refunds?\nStandalone question: {''}", QUESTION)

    assert read(retriever(DOCUMENT), generate(template, ANSWER)) == (QUESTION, ANSWER)
    assert read(rewrite, retriever(DOCUMENT), generate(template, ANSWER)) == ("And refunds?", ANSWER)


def test_fields_of_a_dspy_prompt_are_read_without_its_instructions() -> None:
    """Instrumentations may record the system message in an attribute of its own."""
    prompt = (
        f"[[ ## context ## ]]\n[1] «{DOCUMENT}»\n\n[[ ## question ## ]]\n{QUESTION}\n\n"
        "Respond with the corresponding output fields, starting with the field `[[ ## reasoning ## ]]`, then "
        "`[[ ## answer ## ]]`, and then ending with the marker for `[[ ## completed ## ]]`."
    )
    reply = f"[[ ## reasoning ## ]]\nSo.\n\n[[ ## answer ## ]]\n{ANSWER}\n\n[[ ## completed ## ]]"

    assert read(ask(prompt, reply)) == (QUESTION, ANSWER)


def test_the_reasoning_of_a_model_is_not_part_of_the_answer() -> None:
    """Gemini marks parts that contain its reasoning."""
    reply = [{"role": "model", "parts": [{"text": "Let me think.", "thought": True}, {"text": ANSWER}]}]
    given = {**chat([parts("user", QUESTION)], None).attributes, "gen_ai.output.messages": dumps(reply)}

    assert read(node("generate_content", given, scope="opentelemetry.instrumentation.google_genai")) == (
        QUESTION,
        ANSWER,
    )


def test_the_role_before_a_reply_is_not_part_of_the_answer() -> None:
    """LlamaIndex converts replies to text with their role, and the application may hide the messages themselves."""
    call = {KIND: "LLM", "llm.model_name": "m", "output.value": f"assistant: {ANSWER}"}

    assert read(node("query", {KIND: "CHAIN", "input.value": QUESTION}, node("chat", call))) == (QUESTION, ANSWER)
