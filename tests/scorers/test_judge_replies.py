"""No reply from a judge becomes a number unless it has the requested form, and unusual but valid forms do.

The replies are generated from families, and each judge-based scorer receives all of them over HTTP. ``pytest -s``
prints both rates.
"""

# ruff: noqa: RUF001 - sentences of many languages

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from germane.errors import ScoringError
from germane.score import Score
from germane.scorers import build_scorers, run_scorer
from germane.scorers.judge.embedders import _parse_vectors
from germane.settings import load_settings
from germane.testing import FakeJudge, Fault
from germane.testing.fake_judge import schema_instance

REFUSALS = (
    "I'm sorry, but I can't assist with that.",
    "I cannot help with this request.",
    "I'm sorry, I can't rate this (policy 4).",
    "As an AI language model, I am unable to do that.",
    "Es tut mir leid, aber dabei kann ich nicht helfen.",
    "Dabei kann ich Ihnen leider nicht helfen.",
    "Lo siento, pero no puedo ayudar con eso.",
    "No puedo responder a esa solicitud.",
    "Je suis désolé, je ne peux pas vous aider.",
    "Je ne peux pas répondre à cette demande.",
    "Mi dispiace, non posso aiutarti con questa richiesta.",
    "Desculpe, não posso ajudar com isso.",
    "Извините, я не могу с этим помочь.",
    "Я не могу выполнить этот запрос.",
    "抱歉，我无法协助处理这个请求。",
    "我不能回答这个问题。",
    "申し訳ありませんが、お手伝いできません。",
    "죄송합니다. 도와드릴 수 없습니다.",
    "عذرا، لا أستطيع المساعدة في ذلك.",
)
"""Refusals in eleven languages."""
OFFERS = (
    "",
    "Is there anything else I can help you with?",
    "How can I help you today?",
    "Would you like me to try something else?",
    "Kann ich sonst noch etwas für Sie tun?",
    "¿Hay algo más en lo que pueda ayudarte?",
    "Puis-je vous aider avec autre chose ?",
    "有什么我可以帮您的吗？",
    "他にお手伝いできることはありますか？",
)
REQUESTS = (
    "Could you please provide the answer you would like me to write a question for?",
    "Can you share the text?",
    "Could you give me more details so that I can help?",
    "What text would you like me to use?",
    "Könnten Sie mir bitte den Text bereitstellen?",
    "Pourriez-vous fournir le texte ?",
    "¿Podrías proporcionarme el texto?",
    "请提供答案的内容好吗？",
    "Could you paste it again?",
    "can you resend it?",
    "May I have the text?",
    "Which answer are you referring to?",
    "What topic should the question cover?",
    "Was this helpful?",
    "Are you human?",
    "Retry?",
    "Retry the request?",
    "Womit kann ich dienen?",
    "Könnten Sie den Text noch einmal senden?",
    "Soll ich es nochmal versuchen?",
    "Y a-t-il autre chose que je puisse faire pour vous ?",
    "In cosa posso esserti utile?",
    "Kan jag hjälpa dig med något annat?",
    "Kan jeg hjælpe dig med andet?",
    "Kan jeg hjelpe deg med noe annet?",
    "Voinko auttaa jotenkin muuten?",
    "Mohu vám ještě nějak pomoci?",
    "Ada lagi yang bisa saya bantu?",
    "Tôi có thể giúp gì cho bạn?",
    "Pot să vă ajut cu altceva?",
    "Miben segíthetek?",
    "Чем ещё могу быть полезен?",
    "请问还有什么可以帮到您？",
)
SMALL_TALK = (
    "What would you like to talk about?",
    "What's on your mind today?",
    "How may I be of service?",
    "Could you tell me a bit more about your situation?",
    "Do you have a specific topic in mind?",
    "I didn't catch that. Could you say it differently?",
    "Hmm, what exactly are you looking for?",
    "Which passage should I look at?",
    "Can you attach the file?",
    "What are you trying to achieve?",
    "Shall we continue?",
    "Want me to try again?",
    "Is this what you were looking for?",
    "Does this work for you?",
    "Let me know if you need anything else, okay?",
    "Ready to proceed?",
    "Are you still there?",
    "Did I misunderstand you?",
    "What should I do with this text?",
    "Sorry?",
    "Pardon?",
    "Huh?",
    "Can we start over?",
    "Who am I speaking with?",
    "What format do you prefer?",
    "Should I ask about the date or the place?",
    "Would another question be better?",
    "How does that sound?",
    "I cannot continue this conversation. Can we talk about something else?",
    "That content is blocked. Do you want to appeal?",
    "This violates our usage policy. May I suggest another topic?",
    "Service overloaded, come back later?",
    "Token limit exceeded. Increase max_tokens?",
    "Model not found. Did you mean gpt-4o?",
    "Invalid API key. Have you set OPENAI_API_KEY?",
    "The server is busy, retry in 10s?",
    "Stream interrupted. Resume?",
    "Was möchten Sie wissen?",
    "Worum geht es genau?",
    "Haben Sie noch Fragen?",
    "Wobei brauchst du Hilfe?",
    "Das darf ich nicht beantworten. Haben Sie ein anderes Anliegen?",
    "De quoi avez-vous besoin ?",
    "Que voulez-vous savoir ?",
    "Avez-vous d'autres questions ?",
    "Je n'ai pas le droit de répondre. Une autre demande ?",
    "¿En qué puedo servirle?",
    "¿Qué necesitas saber?",
    "¿Tienes más preguntas?",
    "No se me permite responder. ¿Quieres otra cosa?",
    "Come posso esserle d'aiuto?",
    "Hai altre domande?",
    "Você precisa de ajuda?",
    "Você tem outra pergunta?",
    "Waarmee kan ik u van dienst zijn?",
    "Heeft u nog vragen?",
    "W czym mogę pomóc?",
    "Czy masz inne pytanie?",
    "Size nasıl yardımcı olabilirim?",
    "Başka sorunuz var mı?",
    "Πώς μπορώ να σας βοηθήσω;",
    "Μπορείτε να δώσετε περισσότερες λεπτομέρειες;",
    "Вам нужна ещё помощь?",
    "Что вы хотите узнать?",
    "Уточните, пожалуйста, вопрос?",
    "您还有其他问题吗？",
    "你想了解什么？",
    "请问您需要什么帮助？",
    "何かご用でしょうか？",
    "もう少し詳しく教えてください。どの部分ですか？",
    "무엇을 도와드릴까요?",
    "다른 질문이 있으신가요?",
    "كيف يمكنني مساعدتك اليوم؟",
    "هل لديك أسئلة أخرى؟",
    "मैं आपकी कैसे मदद कर सकता हूँ?",
    "Apakah ada pertanyaan lain?",
    "Bạn cần giúp gì không?",
    "Hur kan jag hjälpa dig?",
    "Miten voin auttaa?",
    "Jak vám mohu pomoci?",
    "Cu ce vă pot ajuta?",
    "איך אני יכול לעזור לך?",
    "คุณต้องการความช่วยเหลืออะไรอีกไหม?",
)
"""What assistants say to their users, in phrases that no list contains. None mentions a ferry."""
PROSE = (
    "Rate limited: try again in {digit} seconds.",
    "The answer misses {digit} aspects entirely.",
    "Step {digit} of the process failed.",
    "I found {digit} problems with the answer.",
    "It took {digit} attempts, but the service is unavailable.",
    "Between {digit} and 5.",
    "There are {digit} passages. I would need more context to rate them.",
    "Policy {digit} applies here.",
    "{digit} requests remain in this minute.",
    "{digit}. The answer is hard to judge.",
    "Version {digit} of this model was retired.",
)
ERROR_TEXTS = (
    "Error: upstream timed out. Would you like to retry?",
    "Error {digit}: overloaded",
    "HTTP {digit}00: internal error. Retry?",
    "upstream connect error or disconnect/reset before headers. reset reason: {digit}",
    "Internal server error. Try again in {digit} minutes?",
)
PAGES = (
    "<html><head><title>50{digit} Bad Gateway</title></head><body>Need help?</body></html>",
    "<!DOCTYPE html>\n<p>\nError {digit}\nWhat happened?\n</p>",
    '<?xml version="1.0"?><Error><Code>{digit}</Code></Error>',
)
OBJECTS: tuple[Any, ...] = (
    {"code": 5, "message": "internal error"}, {"error": {"code": 4, "message": "overloaded"}},
    {"error": "rate limited", "retry_after": 3}, {"status": 3, "detail": "try again?"},
    {"detail": [{"loc": ["body", 1], "msg": "field required"}]}, {"message": "Would you like to retry?"},
    {"ratings": "four"}, {"rating": True}, {"rating": [4]}, {"rating": {"value": 4}}, {"rating": None},
    {"rating": "n/a"}, {"rating": 11}, {"rating": 0}, {"rating": -3}, {"rating": 1e300}, {"rating": "5 of 10"},
    {"question": 5}, {"question": None}, {"question": ""}, {"questions": []},
    {"questions": [1, 2]}, {"questions": "none"}, {"claims": "none"}, {"claims": [4]}, {"sub_questions": {}},
    {"sub_questions": [3]}, {"verdict": 1}, {"verdict": "maybe"}, {"similarities": ["high"]},
    {"similarities": [0.3, 7]}, {}, [], [3], [{"rating": 4}], 4.0e99,
)  # fmt: skip
BEFORE_OBJECTS = ("", "I am not sure about this one.\n", "```json\n")


def invalid_replies() -> list[str]:
    """Return replies that no scorer may turn into a number."""
    replies = [f"{refusal} {offer}".strip() for refusal, offer in product(REFUSALS, OFFERS)]
    replies += [offer for offer in OFFERS if offer]
    replies += [*REQUESTS, *SMALL_TALK, *(f"Sure! {request}" for request in REQUESTS)]
    replies += [text.format(digit=digit) for text, digit in product((*PROSE, *ERROR_TEXTS), range(1, 6))]
    replies += [text.format(digit=digit) for text, digit in product(PAGES, (2, 4))]
    for before, value in product(BEFORE_OBJECTS, OBJECTS):
        replies.append(before + json.dumps(value) + ("\n```" if before.startswith("```") else ""))
    replies += ["", " ", "\n\n", "\u200b", "...", "?", "null", "true", "NaN", "<think>4", "<think>Is it 4? What is it?"]
    replies += ['{"rating": 4', '{"rating": 2} {"rating": 5}', '{"rating": 1, "rating": 5}', '{"a": {"rating": 5}, "b']
    replies += ['I cannot rate this. An example is {"rating": 5}.', "4 or 5", "1 2 3 4 5", "4, 5", "4\n5"]
    return list(dict.fromkeys(replies))


FREE_TEXTS = ("intent", "given", "question", "quote", "source_sentence", "reason")
"""Members in which a judge writes prose."""
AROUND = (
    "Example: {}. However the answer is missing, please provide it.",
    "I cannot rate this. The format would be {} as you asked.",
    "I cannot see the documents. Reply format: {}",
    "I am not sure; {} is one of the options.",
    "I'm sorry, I can't help. For example: ```json\n{}\n```",
    "{} would be a reply, but the text is empty.",
)
"""Texts that show the requested form instead of replying in it."""
ERROR_MEMBERS: tuple[Mapping[str, Any], ...] = (
    {"error": "upstream timeout"}, {"error": {"code": 503}}, {"errors": ["documents missing"]}, {"Error": True},
    {"errorMessage": "overloaded"}, {"error_code": 4}, {"exception": "ValueError"}, {"upstream_failure": "reset"},
)  # fmt: skip


def without_judgment() -> list[Callable[[Any], str]]:
    """Return replies whose object has the requested form, but in which the judge did not judge.

    They are an example in other text, an object with an error, or one whose prose is a refusal or an error message.
    """

    def as_requested(request: Any) -> Any:
        if request.schema is None:
            return {"rating": 4}
        value = schema_instance(request.schema, items=request.numbered_questions or 1)
        return json.loads(json.dumps(value).replace('"text"', '"The asker wants the pier."'))

    def replaced(value: Any, text: str) -> Any:
        if isinstance(value, list):
            return [replaced(item, text) for item in value]
        if isinstance(value, dict):
            members = {name: text if name in FREE_TEXTS else replaced(member, text) for name, member in value.items()}
            return members if value.keys() & set(FREE_TEXTS) else {**members, "reason": text}
        return value

    def around(text: str) -> Callable[[Any], str]:
        return lambda request: text.replace("{}", json.dumps(as_requested(request)))

    def extended(members: Mapping[str, Any]) -> Callable[[Any], str]:
        return lambda request: json.dumps({**as_requested(request), **members})

    def refused(text: str) -> Callable[[Any], str]:
        return lambda request: json.dumps(replaced(as_requested(request), text))

    texts = [*REFUSALS, "Error: rate limit exceeded", "503 Service Unavailable", "HTTP 502: bad gateway"]
    return [*map(around, AROUND), *map(extended, ERROR_MEMBERS), *map(refused, texts)]


RATINGS = (
    "4", " 4\n", "**4**", "4.", "4.0", '"4"', "`4`", "# 4", "four", "Four.", "4/5", "4 / 5", "**4/5**", "4 out of 5",
    "Rating: 4", "**Rating:** 4", "Rating: **4**", "rating = 4", "Score: 4/5", "The rating is 4.", "My rating: 4",
    "Final rating: 4", "I rate it 4.", "Bewertung: 4", "Note: 4", "Puntuación: 4", "评分：4", "評価: 4", "Оценка: 4",
    "4 = mostly", "4 (mostly)", "4 - mostly", "4: mostly", "mostly", "Mostly.", "Not at all.", "4 points", "4 stars",
    "```\n4\n```", "```json\n4\n```", '{"rating": 4}', '{"rating": "4"}', '{"rating": "four"}', '{"rating": "4/5"}',
    '{"rating": 4.0}', '{"score": 4}', '{"rating": 4, "reason": "It misses 2 aspects."}', '```json\n{"rating": 4}\n```',
    'Here is the JSON: {"rating": 4}', 'Sure! Here is my rating:\n```json\n{"rating": 4}\n```',
    "<think>Is it 2 or 3? Not 5.</think>4", '<think>{"rating": 1}</think>\n{"rating": 4}', "Not 5.</think>\n\n4",
    "Here is my rating: 4", "<rating>4</rating>", '{"Rating": 4}', '{"score": 4, "rating": 4}',
    '{\n  "rating": 4\n}', '\ufeff4', "Mostly relevant.", "4 (mostly relevant)", "Relevance: 4", "(4)", r"\boxed{4}",
    "I would rate this answer 4 out of 5.", "I'd give this a 4.", "This answer deserves a 4.",
    "<reasoning>5?</reasoning>4", "<|channel|>analysis<|message|>5?<|end|><|channel|>final<|message|>4<|return|>",
    '{"rating": 4} {"rating": 4}', "Here is the rating you asked for:\n```\n4\n```",
)  # fmt: skip
"""Unusual but valid forms of a rating."""
FORMS: Mapping[str, Callable[[str], str]] = {
    "as requested": lambda text: text,
    "fenced": lambda text: f"```json\n{text}\n```",
    "fenced without a language": lambda text: f"```\n{text}\n```",
    "with a closing": lambda text: f"Here are my ratings:\n{text}\nLet me know if you need anything else!",
    "with an empty error": lambda text: json.dumps({**json.loads(text), "error": None, "errors": []}),
    "introduced": lambda text: f"Sure! Here is the JSON you asked for:\n\n{text}",
    "between sentences": lambda text: f"Here it is:\n```json\n{text}\n```\nI hope that this helps.",
    "after reasoning": lambda text: f'<think>Is it {{"rating": 1}}? What else?</think>\n{text}',
    "after reasoning without a tag": lambda text: f"Maybe 3 of 5?</think>{text}",
    "indented": lambda text: json.dumps(json.loads(text), indent=4),
    "twice": lambda text: f"{text}\n{text}",
    "with more members": lambda text: json.dumps({**json.loads(text), "confidence": "high"}),
    "with white space": lambda text: f"\n\n\t {text} \r\n ",
    "with a byte order mark": lambda text: f"\ufeff{text}",
}
"""Unusual but valid forms of a JSON object."""
QUESTIONS = (
    "Where does the ferry leave?", "  Where does the ferry leave?\n", '"Where does the ferry leave?"',
    "Question: Where does the ferry leave?", "1. Where does the ferry leave?", "**Where does the ferry leave?**",
    "Sure! Where does the ferry leave?", "Here is the question: Where does the ferry leave?",
    "Where does the ferry leave", "<think>Hm?</think>Where does the ferry leave?", "Wo legt die Fähre ab?",
    "¿De dónde sale el ferry?", "渡轮从哪里出发？", "フェリーはどこから出ますか。",
    "Откуда отправляется паром?", "من أين تغادر العبارة؟",
    "Why can't I find the pier?", "What should I do if I miss the ferry?", "Can you tell me where the ferry leaves?",
    "What does error 503 mean?", "How can I help my child find the pier?",
    "Could you explain the details of the route?", "Can you provide more information about the ferry?",
    "What does the policy say about late ferries?", "Kann ich noch stornieren?", "Darf ich bei Ihnen parken?",
    "Puis-je encore annuler ma commande ?", "Is there something that I can take for nausea?",
    "Does this help with headaches?", "404 errors: how do I fix them?", "HTTP: what does it stand for?",
    "500 calories: how long to burn them?",
)  # fmt: skip
"""Unusual but valid forms of a generated question, and questions that resemble refusals, requests and errors."""
SUBJECTS = "Ferry: Parken, les commandes à annuler, headaches on the route:"
"""Subjects of those questions that address someone. A question that shares no word with the answer must not."""

SCORERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "answer_relevancy": ("answer_relevancy", {}),
    "answer_relevancy by judge": ("answer_relevancy", {"similarity": "judge"}),
    "answer_relevancy with votes": ("answer_relevancy", {"judge_detects_refusals": True}),
    "answer_relevancy, few-shot": ("answer_relevancy", {"prompt_style": "few_shot"}),
    "direct_relevancy": ("direct_relevancy", {}),
    "direct_relevancy without logprobs": ("direct_relevancy", {"logprobs": False}),
    "guarded_relevancy": ("guarded_relevancy", {}),
    "context_relevance": ("context_relevance", {}),
    "question_coverage": ("question_coverage", {}),
    "intent_match": ("intent_match", {}),
    "noncommittal": ("noncommittal", {"judge": True}),
    "faithfulness": ("faithfulness", {}),
    "faithfulness with extraction": ("faithfulness", {"claims": "judge"}),
}
"""Every judge-based scorer that sends requests of its own, with options."""
NUMBER = re.compile(r"\bcase-(\d+)\b")


@pytest.fixture
def score_replies(fake: FakeJudge, bare: Path, exchange: Any) -> Callable[..., list[Score]]:
    """Return a function that scores one exchange per reply: the judge gives this reply to each of its requests.

    None stands for the fake judge's own reply.
    """

    def score(case: str, replies: list[str | Callable[[Any], str]], *, about: str = "Ferry") -> list[Score]:
        def reply(request: Any) -> str | None:
            number = NUMBER.search(request.text)
            chosen = replies[int(number[1])] if number else None
            return chosen(request) if callable(chosen) else chosen

        fake.replies = reply
        name, options = SCORERS[case]
        settings = load_settings(service="tests", **fake.settings(), scorers=(name,), scorer_options={name: options})

        async def score_all() -> list[Score]:
            models = build_scorers(settings)
            gate = asyncio.Semaphore(16)

            async def score_one(index: int) -> Score:
                texts = (f"Where does the ferry leave (case-{index})?", f"{about} case-{index} leaves from the pier.")
                async with gate:
                    return await run_scorer(models.scorers[0], exchange(*texts, f"Ferry case-{index} leaves there."))

            try:
                return await asyncio.gather(*map(score_one, range(len(replies))))
            finally:
                await models.aclose()

        return asyncio.run(score_all())

    return score


@pytest.mark.slow
@pytest.mark.parametrize("case", SCORERS)
def test_no_invalid_reply_becomes_a_number(case: str, score_replies: Callable[..., list[Score]]) -> None:
    """Neither a digit in a sentence nor a refusal with a question mark, an error, a page, or another JSON object."""
    replies = invalid_replies()
    assert len(replies) >= 300

    scores = score_replies(case, replies)

    invented = {reply: score.value for reply, score in zip(replies, scores, strict=True) if score.value is not None}
    sys.stdout.write(f"{case}: {len(invented)} of {len(replies)} invalid replies became a number" + "\n")
    assert invented == {}


@pytest.mark.parametrize("case", [case for case in SCORERS if "answer_relevancy" not in case])
def test_object_without_a_judgment_yields_no_score(case: str, score_replies: Callable[..., list[Score]]) -> None:
    """An example of the form, an object with an error, and a refusal in the form of a judgment."""
    scores = score_replies(case, list(without_judgment()))

    assert [index for index, score in enumerate(scores) if score.value is not None] == []
    assert {str(score.reason) for score in scores} <= {"unparsable", "judge_refused"}


@pytest.mark.parametrize("intent", ["The user asks why they can't log in.", "Fehler 404 beheben", "Sorry seems hard"])
def test_judge_may_quote_an_apology_or_an_error_from_the_texts(judged: Any, exchange: Any, intent: str) -> None:
    """A judge quotes what the user and the assistant wrote."""
    given = "Sorry, we cannot accept returns after 30 days."
    reply = json.dumps({"intent": intent, "given": given, "rating": 5})

    (score,) = judged("intent_match", lambda _: reply, exchange(f"{intent}?", f"{given} Error: none."))

    assert score.value == 1.0


@pytest.mark.parametrize("case", ["direct_relevancy", "direct_relevancy without logprobs", "guarded_relevancy"])
def test_unusually_formatted_ratings_are_accepted(case: str, score_replies: Callable[..., list[Score]]) -> None:
    """Markdown, labels, verdicts, code fences and reasoning may surround a rating."""
    scores = score_replies(case, list(RATINGS))

    lost = {reply: score.explanation for reply, score in zip(RATINGS, scores, strict=True) if score.value is None}
    sys.stdout.write(f"{case}: {len(lost)} of {len(RATINGS)} valid replies were lost" + "\n")
    assert lost == {}
    if "guarded" not in case:
        expected = [0.0 if reply == "Not at all." else 0.75 for reply in RATINGS]
        assert [score.value for score in scores] == expected


@pytest.mark.parametrize("case", [case for case in SCORERS if "direct" not in case and "guarded" not in case])
def test_unusually_formatted_objects_are_accepted(case: str, score_replies: Callable[..., list[Score]]) -> None:
    """Code fences, introductions, reasoning and white space may surround a JSON object."""

    def in_form(change: Callable[[str], str]) -> Callable[[Any], str]:
        def reply(request: Any) -> str:
            if request.schema is None:
                return "Where does the ferry leave?"
            value = schema_instance(request.schema, items=request.numbered_questions or 1)
            text = json.dumps(value).replace('"text"', '"Where does the ferry leave?"')
            return change(text)

        return reply

    scores = score_replies(case, [in_form(change) for change in FORMS.values()])

    lost = {form: score.explanation for form, score in zip(FORMS, scores, strict=True) if score.value is None}
    sys.stdout.write(f"{case}: {len(lost)} of {len(FORMS)} valid replies were lost" + "\n")
    assert lost == {}


@pytest.mark.parametrize("case", ["answer_relevancy", "answer_relevancy, few-shot"])
def test_unusually_formatted_questions_are_accepted(case: str, score_replies: Callable[..., list[Score]]) -> None:
    """This includes questions that resemble a refusal, a request for input or an error message."""
    scores = score_replies(case, list(QUESTIONS), about=SUBJECTS)

    lost = {reply: score.explanation for reply, score in zip(QUESTIONS, scores, strict=True) if score.value is None}
    sys.stdout.write(f"{case}: {len(lost)} of {len(QUESTIONS)} valid replies were lost" + "\n")
    assert lost == {}


@pytest.mark.parametrize("kind", ["zero_logprobs", "probabilities_as_logprobs", "boolean_logprobs"])
@pytest.mark.parametrize("name", ["direct_relevancy", "context_relevance"])
def test_impossible_log_probabilities_are_ignored(
    fake: FakeJudge, judged: Any, exchange: Any, kind: Any, name: str
) -> None:
    """The judge's text is the rating instead."""
    fake.first_token = {"2": 0.6, "4": 0.3, "The": 0.1}
    fake.faults.extend([Fault(kind)] * 4)

    def reply(request: Any) -> str:
        return "4" if request.schema is None else '{"ratings": [4]}'

    (score,) = judged(name, reply, exchange("Where is it?", "It is here.", "It is here."))

    assert score.value == 0.75


@pytest.mark.parametrize(
    "embeddings",
    [
        [[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0], [1.0 + 1e-9, 2.0]], [[1.0, 2.0], [3.0, 6.0]], [["1", "2"], ["2", "1"]],
        [[1.0, "2"], [2.0, 1.0]], [[1.0, None], [2.0, 1.0]], [[True, 2.0], [2.0, 1.0]], [[1.0, [2.0]], [2.0, 1.0]],
    ],
)  # fmt: skip
def test_implausible_vectors_are_rejected(embeddings: list[list[Any]]) -> None:
    """Equal or parallel vectors for different texts, and numbers written as strings."""
    data = [SimpleNamespace(index=index, embedding=embedding) for index, embedding in enumerate(embeddings)]

    with pytest.raises(ScoringError) as caught:
        _parse_vectors(SimpleNamespace(data=data), ["Where is the pier?", "It is here."])

    assert str(caught.value.reason) == "embedder_error"


@pytest.mark.parametrize("rows", [[[1.0, 2.0], [2.0, 1.0]], [[1, 2], [1, 3]], [[1.0, 2.0], [-1.0, -2.0]]])
def test_different_vectors_are_accepted(rows: list[list[float]]) -> None:
    """This includes integers and opposite directions."""
    data = [SimpleNamespace(index=index, embedding=row) for index, row in enumerate(rows)]

    assert _parse_vectors(SimpleNamespace(data=data), ["Where is the pier?", "It is here."]).shape == (2, 2)


@pytest.mark.parametrize(
    "kind", ["one_based_index", "string_index", "duplicate_index", "no_index", "booleans", "constant", "wrong_count"]
)
@pytest.mark.parametrize("name", ["answer_relevancy", "guarded_relevancy", "question_answer_similarity"])
def test_vectors_that_may_belong_to_other_texts_yield_no_score(
    fake: FakeJudge, judged: Any, exchange: Any, kind: Any, name: str
) -> None:
    """Each vector needs the index of its text, and different texts do not all have the same vector."""
    fake.embedding_faults.extend([Fault(kind)] * 4)

    (score,) = judged(name, (), exchange())

    assert (score.value, str(score.reason)) == (None, "embedder_error")
