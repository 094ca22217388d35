"""Only valid replies from a judge become numbers, including those in an unusual format.

The replies are generated from templates, and each judge-based scorer receives all of them: one of 20 over HTTP, and the
others in this process. ``pytest -s`` prints the number of errors of each kind.
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
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.cases import each

from germane.errors import ScoringError
from germane.score import Score
from germane.scorers import build_scorers, run_scorer, schema_instance
from germane.scorers.base.reply_parser import UnreadableReply, find_error_member, parse_json_object
from germane.scorers.judge.embedders import _parse_vectors
from germane.scorers.prompting.rating import parse_rating
from germane.settings import load_settings
from germane.testing import FakeJudge, Fault

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
"""Small talk by assistants, in phrases that no list contains. No phrase mentions a ferry."""
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
    {"similarities": [0.3, 7]}, {}, [], [3], [{"rating": 4}, {"rating": 4}], 4.0e99,
    {"rating": 4, "max_score": 100}, {"rating": 4, "scale": "1-10"}, {"score": 4, "max": 10},
    {"rating": 4, "range": [0, 10]}, {"rating": "< 4"}, {"rating": ">5"}, {"rating": 4, "outOf": 7},
    {"rating": 4, "min": 0, "max": 5},
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
    replies += [
        f"{sign}{gap}{digit}" for sign, gap, digit in product(("<", ">", ">=", "<=", "=", "≥", "~"), ("", " "), (4, 5))
    ]
    return list(dict.fromkeys(replies))


OTHER_REFUSALS = (
    "I must respectfully decline to evaluate this content.", "I'd rather not judge this.",
    "Unable to comply with this request.", "Cannot evaluate: content policy.", "Content filtered.",
    "This request was blocked by our content management policy.", "No answer was provided.",
    "The input appears to be empty.", "Please provide the answer to evaluate.",
    "It is not possible for me to rate this.",
    "I am programmed to be harmless and can't do that.", "We are not able to process this.",
    "Als KI kann ich das nicht bewerten.", "Bitte geben Sie die Antwort an.",
    "Je regrette, il m'est impossible d'évaluer.",
    "En tant qu'IA, je ne peux pas évaluer ceci.", "No me es posible evaluar esto.", "Non sono in grado di valutare.",
    "Não consigo avaliar isso.", "Ik kan dit niet beoordelen.", "Nie jestem w stanie ocenić.",
    "Я не в состоянии оценить это.", "На жаль, я не можу це оцінити.", "无法评分。", "作为一个AI，我不能评价。",
    "我没有足够的信息来评分。", "評価できません。", "恐れ入りますが、評価いたしかねます。", "평가할 수 없습니다.",
    "Değerlendiremiyorum.", "لا يمكنني تقييم ذلك.", "मुझे खेद है, मैं मूल्यांकन नहीं कर सकता।",
    "Tyvärr kan jag inte bedöma det.", "Valitettavasti en voi arvioida tätä.",
    "Desværre, jeg kan ikke vurdere dette.",
    "Xin lỗi, tôi không thể đánh giá.", "Maaf, saya tidak dapat menilai ini.", "ขออภัย ฉันไม่สามารถประเมินได้",
    "Λυπάμαι, δεν μπορώ να το αξιολογήσω.", "Omlouvám se, nemohu to hodnotit.", "Sajnálom, nem tudom értékelni.",
    "No rating possible.", "I abstain.", "Skipping this one.", "Simulated response.",
    "I have no access to the passages.", "Could you please provide the answer?", "Can you share the text?",
    "Diese Anfrage verstößt gegen die Richtlinien.", "Évaluation impossible.", "Ocena niemożliwa.",
    "该请求违反了内容政策。", "このリクエストはポリシーに違反しています。", "Îmi pare rău, nu pot evalua.",
    "מצטער, איני יכול להעריך.", "Съжалявам, не мога да оценя това.",
    "Žao mi je, ne mogu to ocijeniti.", "Ez dut hau baloratu nahi.", "Ni alla asesu hyn.", "Ég get ekki metið þetta.",
)  # fmt: skip
"""Refusals to judge in many languages. No phrase list contains the last three."""
OTHER_ERRORS = (
    "Error: rate limit exceeded", "503 Service Unavailable", "HTTP 502: bad gateway",
    "rate limit exceeded, default value returned", "Upstream timed out; fallback value.", "Connection reset by peer",
    "503 upstream unavailable", "HTTP 503", "Service temporarily unavailable", "Judge timed out, default.",
    "ERR_TIMEOUT",
    "Traceback (most recent call last): ...", "Internal error: worker crashed", "fallback due to model overload",
    "quota exceeded", "OpenAI API error", "CUDA error", "Judge offline", "Model is loading, please wait", "OOM",
    "Servicio no disponible", "Сервис недоступен", "服务不可用", "Retry later", "The model produced no output.",
)  # fmt: skip
REASONS = (
    "It misses 2 aspects.", "The answer names the pier, so it is on topic.",
    "It mentions an error: the ferry is late.",
    "Sorry service aside, the answer is on topic.", "fine", "OK", "Die Antwort nennt den Ort.", "回答提到了渡轮。",
    "The answer does not provide any information.", "It names the ferry.", "high", "La réponse est complète.",
    "n/a", "",
)  # fmt: skip
"""Reasons that judges add to a judgment."""
FREE_TEXTS = ("intent", "given", "question", "quote", "source_sentence", "reason")
"""JSON members that contain a judge's prose."""
AROUND = (
    "Example: {}. However the answer is missing, please provide it.",
    "I cannot rate this. The format would be {} as you asked.",
    "I cannot see the documents. Reply format: {}",
    "I am not sure; {} is one of the options.",
    "I'm sorry, I can't help. For example: ```json\n{}\n```",
    "{} would be a reply, but the text is empty.",
)
"""Texts that show an example of the requested format instead of a reply."""
ERROR_MEMBERS: tuple[Mapping[str, Any], ...] = (
    {"error": "upstream timeout"}, {"error": {"code": 503}}, {"errors": ["documents missing"]}, {"Error": True},
    {"errorMessage": "overloaded"}, {"error_code": 4}, {"exception": "ValueError"}, {"upstream_failure": "reset"},
)  # fmt: skip


def without_judgment() -> list[Callable[[Any], str]]:
    """Return replies whose object has the requested format but does not contain a judgment.

    The object is an example inside other text, has an error field, or contains a refusal or an error message.
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

    texts = [*REFUSALS, *OTHER_REFUSALS, *OTHER_ERRORS]
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
    '[{"rating": 4}]', '{"rating": 4,}', "4<|im_end|>", "4<|eot_id|>", "4</s>", "Rating (1-5): 4",
    "Rating (1 to 5): 4/5",
    "评分: 4分", "評分：4", "점수: 4점", "Wertung: 4 Punkte", "Voto: 4", "Оценка — 4", "Rating: 4 (out of 5)",
    "<answer>4</answer>", 'Hier ist das JSON: {"rating": 4}', '{"rating": 4, "max_rating": 5}', "4 ⭐",
    '{"rating": 4, "scale": "1-5"}', '{"rating": 4, "min": 1, "max": 5}',
    '{"rating": 4} {"rating": 4}', "Here is the rating you asked for:\n```\n4\n```",
)  # fmt: skip
"""Ratings in unusual but valid formats."""
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
    "with a trailing comma": lambda text: text[:-1] + ",}",
    "in a list": lambda text: f"[{text}]",
    "with an end token": lambda text: f"{text}<|im_end|>",
    "with another end token": lambda text: f"{text}</s><|eot_id|>",
    "introduced in German": lambda text: f"Hier ist das JSON:\n{text}",
    "introduced in French": lambda text: f"Voici le résultat :\n```json\n{text}\n```",
    "introduced in Spanish": lambda text: f"Aquí está el objeto: {text}",
    "introduced in Chinese": lambda text: f"以下是结果：\n{text}",
    "introduced in Swahili": lambda text: f"Haya hapa matokeo:\n{text}",
    "with a raw line break": lambda text: text.replace(" the ferry", " the\nferry"),
    "after reasoning in other tags": lambda text: f"<|begin_of_thought|>5?<|end_of_thought|>{text}",
    "between invisible characters": lambda text: f"\u200b{text}\u200b",
    "in an answer tag": lambda text: f"<answer>{text}</answer>",
    "with white space": lambda text: f"\n\n\t {text} \r\n ",
    "with a byte order mark": lambda text: f"\ufeff{text}",
}
"""Unusual but valid formats of a JSON object."""
TOLERATED = (
    "as requested",
    "fenced",
    "introduced",
    "with a trailing comma",
    "in a list",
    "with an end token",
    "indented",
)
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
"""Questions in unusual but valid formats, and questions that resemble refusals, requests and errors."""
SUBJECTS = "Ferry: Parken, les commandes à annuler, headaches on the route:"
"""Subjects of the questions that address someone. Such a question must share a word with the answer."""

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
"""The judge-based scorers that send their own requests, with options."""
COMBINED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "combined_relevancy": ("combined_relevancy", {}),
    "answer_quality": ("answer_quality", {}),
}
"""The scorers that combine others. An invalid reply to any part would give them a value."""
NUMBER = re.compile(r"\bcase-(\d+)\b")


@pytest.fixture
def score_replies(fake: FakeJudge, mostly_in_process: None, bare: Path, exchange: Any) -> Callable[..., list[Score]]:
    """Return a function that scores one exchange per reply: the judge sends this reply to every request.

    None stands for the fake judge's own reply.
    """

    def score(case: str, replies: list[str | Callable[[Any], str]], *, about: str = "Ferry") -> list[Score]:
        def reply(request: Any) -> str | None:
            number = NUMBER.search(request.text)
            chosen = replies[int(number[1])] if number else None
            return chosen(request) if callable(chosen) else chosen

        fake.replies = reply
        name, options = {**SCORERS, **COMBINED}[case]
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
@each("case", [*SCORERS, *COMBINED])
def test_no_invalid_reply_becomes_a_score(case: str, score_replies: Callable[..., list[Score]]) -> None:
    """Examples are digits in sentences, refusals with question marks, errors, web pages and other JSON objects."""
    replies = invalid_replies()
    assert len(replies) >= 300

    scores = score_replies(case, replies)

    invented = {reply: score.value for reply, score in zip(replies, scores, strict=True) if score.value is not None}
    sys.stdout.write(f"{case}: {len(invented)} of {len(replies)} invalid replies became a number" + "\n")
    assert invented == {}


@each("case", [case for case in SCORERS if "answer_relevancy" not in case])
def test_json_object_without_a_judgment_yields_no_score(case: str, score_replies: Callable[..., list[Score]]) -> None:
    """This covers examples of the format, objects with an error, and refusals in the format of a judgment."""
    scores = score_replies(case, list(without_judgment()))

    assert [index for index, score in enumerate(scores) if score.value is not None] == []
    assert {str(score.reason) for score in scores} <= {"unparsable", "judge_refused"}


@each("case", [case for case in SCORERS if "answer_relevancy" not in case])
def test_text_in_the_reason_does_not_invalidate_a_judgment(
    case: str, score_replies: Callable[..., list[Score]]
) -> None:
    """A reason may evaluate the texts or name their subject, in any language."""

    def with_reason(reason: str) -> Callable[[Any], str]:
        def reply(request: Any) -> str:
            value = {"rating": 4}
            if request.schema is not None:
                value = schema_instance(request.schema, items=request.numbered_questions or 1)
            return json.dumps({**value, "reason": reason})

        return reply

    scores = score_replies(case, [with_reason(reason) for reason in REASONS])

    assert {
        reason: score.explanation for reason, score in zip(REASONS, scores, strict=True) if score.value is None
    } == {}


@each("intent", ["The user asks why they can't log in.", "Fehler 404 beheben", "Sorry seems hard"])
def test_a_reply_that_quotes_an_apology_or_an_error_is_accepted(judged: Any, exchange: Any, intent: str) -> None:
    """Judges quote what users and assistants wrote."""
    given = "Sorry, we cannot accept returns after 30 days."
    reply = json.dumps({"intent": intent, "given": given, "rating": 5})

    (score,) = judged("intent_match", lambda _: reply, exchange(f"{intent}?", f"{given} Error: none."))

    assert score.value == 1.0


def test_a_reply_that_repeats_what_the_user_cannot_do_is_accepted(judged: Any, exchange: Any) -> None:
    """The judge may express this in different words than the user."""
    asked = ["Why am I unable to log in, and why can't I reset the password?", "What can I do if I cannot log in?"]
    items = [{"question": text, "quote": "Your account is locked", "addressed": "yes"} for text in asked]
    reply = json.dumps({"asked": asked, "sub_questions": items})

    (score,) = judged("question_coverage", lambda _: reply, exchange("I don't get in??", "Your account is locked."))

    assert score.value == 1.0


@each("case", ["direct_relevancy", "direct_relevancy without logprobs", "guarded_relevancy"])
def test_unusually_formatted_ratings_are_accepted(case: str, score_replies: Callable[..., list[Score]]) -> None:
    """Markdown, labels, verdicts, code fences and reasoning may surround a rating."""
    scores = score_replies(case, list(RATINGS))

    lost = {reply: score.explanation for reply, score in zip(RATINGS, scores, strict=True) if score.value is None}
    sys.stdout.write(f"{case}: {len(lost)} of {len(RATINGS)} valid replies were lost" + "\n")
    assert lost == {}
    if "guarded" not in case:
        expected = [0.0 if reply == "Not at all." else 0.75 for reply in RATINGS]
        assert [score.value for score in scores] == expected


@each("case", [case for case in SCORERS if "direct" not in case and "guarded" not in case])
def test_unusually_formatted_json_objects_are_accepted(case: str, score_replies: Callable[..., list[Score]]) -> None:
    """Code fences, introductions, reasoning and whitespace may surround a JSON object."""

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


@each("case", ["answer_relevancy", "answer_relevancy, few-shot"])
def test_unusually_formatted_generated_questions_are_accepted(
    case: str, score_replies: Callable[..., list[Score]]
) -> None:
    """This includes questions that resemble a refusal, a request for input or an error message."""
    scores = score_replies(case, list(QUESTIONS), about=SUBJECTS)

    lost = {reply: score.explanation for reply, score in zip(QUESTIONS, scores, strict=True) if score.value is None}
    sys.stdout.write(f"{case}: {len(lost)} of {len(QUESTIONS)} valid replies were lost" + "\n")
    assert lost == {}


EXCHANGES: Mapping[str, tuple[str, str]] = {
    "long": ("Where does the ferry leave?", "Ferry leaves from the pier behind the fish market."),
    "with words of support": (
        "How do I reset my password?",
        "Open the settings, choose Security, and press Reset; the service then sends you an email with a link.",
    ),
    "German": ("Wann kann ich zurückgeben?", "Sie können die Ware innerhalb von 30 Tagen zurückgeben."),
    "Chinese": ("退货期限是多久？", "您可以在收到商品后30天内申请退货。"),
    "a number": ("When was it built?", "1889."),
    "yes": ("Is it open on Sunday?", "Yes."),
    "a name": ("Who painted the ceiling?", "Michelangelo"),
}
"""Questions and answers, including short ones."""
WITHOUT_SUBJECT = (
    "What is the question?", "What is the answer?", "What is this about?", "What happened?", "Why?", "Really?",
    "Is this correct?", "Is that all?", "Is there a problem?", "Was ist die Frage?", "Wie lautet die Antwort?",
    "Quelle est la question ?", "¿Cuál es la respuesta?", "Qual è la domanda?", "Wat is de vraag?", "Какой вопрос?",
    "问题是什么？", "什么？", "質問は何ですか？", "질문이 무엇인가요?", "What is X?", "null?",
    "Question?", "[question]?",
)  # fmt: skip
ABOUT_ERRORS = (
    "Is the server down?", "Why did the upstream fail?", "Could not parse: is it JSON?",
    "Too many requests, slow down?",
    "Session expired. Log in again?", "Zeitüberschreitung. Erneut versuchen?", "Limite atteinte. Réessayer ?",
    "Límite superado. ¿Reintentar?", "Limite superato. Riprovare?", "Limit przekroczony. Ponowić?",
    "Превышено время ожидания. Повторить?", "请求超时，是否重试？", "タイムアウトしました。再試行しますか？",
    "시간 초과. 다시 시도할까요?", "KeyError: 'answer' - is it set?",
    "Deadline exceeded while calling the model. Retry?",
)  # fmt: skip
MORE_SMALL_TALK = (
    "Is everything okay?", "Did that make sense?", "Is this a test?", "Is it urgent?", "Is there a typo?",
    "Should it be formal?", "Would a list help?", "Which format?", "Which language?", "Who is asking?",
    "続けますか？", "次に進みますか？", "继续吗？", "这样可以吗？", "괜찮으세요?",
    "Anything I can clear up?", "Shall I go ahead?", "Mind sharing a bit more?", "Do you need a hand?",
    "Ist sonst noch etwas unklar?", "Puis-je faire autre chose ?", "¿Hay algo que quieras aclarar?",
    "C'è altro che posso fare per te?", "Posso ajudar em mais alguma coisa?", "Kan ik verder nog iets voor u doen?",
    "Czy coś jeszcze mogę dla ciebie zrobić?", "Başka bir isteğiniz var mı?", "还有别的事吗？",
    "ほかに何かありますか？",
    "더 필요한 것이 있나요?", "هل تحتاج إلى شيء آخر؟", "क्या आपको और कुछ चाहिए?",
    "Vad vill du veta?", "Co chcete vědět?",
    "Ce doriți să știți?", "Τι θέλετε να μάθετε;", "มีอะไรให้ช่วยอีกไหม", "Bạn muốn biết điều gì?",
)  # fmt: skip
ABOUT_THE_TASK = (
    "I'd prefer not to write a question about {0}. Is that okay?", "Could you clarify which {0} you mean?",
    "Can you tell me more about {0}?",
    "Could you share more of the passage about {0} so I can write a good question?",
    "Which part of the text about {0} should the question focus on?", "Is the text about {0} complete?",
    "Failed to generate question for '{0}': retry?", "Timeout while processing '{0}'. Retry?",
    "Generating a question about {0} failed, shall I retry?",
    "Here you go: the {0} question. Does that work for you?",
    "Hmm, {0}... can we pick another topic?", "Möchten Sie mehr über {0} wissen?",
    "Souhaitez-vous en savoir plus sur {0} ?",
    "¿Quieres saber más sobre {0}?", "Vuoi sapere di più su {0}?", "Quer saber mais sobre {0}?",
    "Wilt u meer weten over {0}?", "{0} についてもっと知りたいですか？", "你想了解更多关于 {0} 的信息吗？",
    "{0}에 대해 더 알고 싶으신가요?", "Хотите узнать больше о {0}?", "Do you want a question about {0}?",
    "What do you want to ask about {0}?", "Which aspect of {0} interests you?", "What specifically about {0}?",
    "Could you be more specific about {0}?", "I think the question is about {0}, right?", "Is that all about {0}?",
    "Your input mentions {0}; what should I do with it?", "Brauchen Sie Hilfe mit {0}?", "Нужна помощь с {0}?",
    "Avez-vous besoin d'aide avec {0} ?", "¿Necesitas ayuda con {0}?", "Hai bisogno di aiuto con {0}?",
    "{0} について何を知りたいですか？", "{0}에 대해 무엇을 알고 싶으세요?", "Potrzebujesz pomocy z {0}?",
)  # fmt: skip
"""Remarks of a judge about its task that name a subject of the answer."""


@pytest.mark.parametrize("style", ["instructions", "few_shot"])
@pytest.mark.parametrize("kind", EXCHANGES)
@pytest.mark.usefixtures("mostly_in_process")
def test_small_talk_in_a_reply_never_becomes_a_score(
    judged: Any, fake: FakeJudge, exchange: Any, kind: str, style: str
) -> None:
    """This includes one-word answers, replies as text and as JSON, and refusals that name the subject."""
    asked, answer = EXCHANGES[kind]
    subject = max(re.findall(r"\w+", answer), key=len)
    replies = [f"{refusal} {offer}".strip() for refusal, offer in product((*REFUSALS, *OTHER_REFUSALS), OFFERS[:2])]
    replies += [*OFFERS[1:], *REQUESTS, *SMALL_TALK, *MORE_SMALL_TALK, *WITHOUT_SUBJECT, *ABOUT_ERRORS]
    replies += [text.format(digit=3) for text in ERROR_TEXTS] + [text.format(subject) for text in ABOUT_THE_TASK]
    assert len(replies) >= 300
    sent = iter(replies if style == "few_shot" else [json.dumps({"question": text}) for text in replies])
    fake.supports_n = True
    exchanges = [exchange(asked, answer) for _ in replies]
    options = {"prompt_style": style, "label_from": "answer", "generated_questions": 1}

    scores = judged("answer_relevancy", lambda _: next(sent), *exchanges, **options)

    invented = {text: score.value for text, score in zip(replies, scores, strict=True) if score.value is not None}
    sys.stdout.write(f"{kind}, {style}: {len(invented)} of {len(replies)} invalid replies became a number" + "\n")
    assert invented == {}


GENERATED = (
    ("How can I contact you?", "Call 555-1234 or write to support@example.com.", "What is your phone number?"),
    ("How can I contact you?", "Call 555-1234 or write to support@example.com.", "How can I contact you?"),
    ("How can I contact you?", "Call 555-1234 or write to support@example.com.", "How can I get help?"),
    ("When are you open?", "Open Monday to Friday, 9 to 17.", "What are your business hours?"),
    ("When are you open?", "Open Monday to Friday, 9 to 17.", "When can I visit you?"),
    ("Bis wann habt ihr auf?", "Bis 22 Uhr.", "Wie lange haben Sie geöffnet?"),
    ("What do you do?", "I can help with orders, invoices and deliveries.", "What can you help me with?"),
    ("What can you do?", "I can help with orders, invoices and deliveries.", "How can you help me?"),
    ("When was it built?", "1889.", "When was the Eiffel Tower completed?"),
    ("When was it built?", "1889.", "In what year did the construction end?"),
    ("Is it open on Sunday?", "Yes.", "Is the shop open on Sundays?"),
    ("Is it open on Sunday?", "Yes.", "Are you open at the weekend?"),
    ("How much is it?", "12 euros.", "How much does a ticket cost?"),
    ("Who wrote it?", "Kafka.", "Who is the author of The Trial?"),
    ("How do I undo?", "Press Ctrl+Z.", "Which keys undo my last action?"),
    ("Can I return it?", "We cannot accept returns after 30 days.", "Can I still send it back after six weeks?"),
    ("Can I return it?", "We cannot accept returns after 30 days.", "Why can't I return my order?"),
    ("Why did it stop?", "Increase max_tokens.", "Why does the model stop in the middle of a sentence?"),
    ("When can I call again?", "The quota resets at midnight UTC.", "When does my quota reset?"),
    ("The app crashes, what now?", "Restart the app; if the error persists, reinstall it.", "How do I fix the error?"),
    ("What is a timeout?", "A timeout means the server took too long.", "Why did my request time out?"),
    ("What is a timeout?", "A timeout means the server took too long.", "Why do I see 'Request timed out. Try again'?"),
    ("Who made you?", "I am a virtual assistant made by Acme.", "Are you a virtual assistant?"),
    ("How do I get a refund?", "Refunds are issued within 14 days.", "When will I get my money?"),
    ("How do I get a refund?", "Refunds are issued within 14 days.", "How quickly do you pay me back?"),
    ("Headache?", "Take 200 mg ibuprofen.", "What would you recommend for a headache?"),
    ("What do I upload?", "Upload a PDF under 5 MB.", "What format should the document have?"),
    ("Comment vous joindre ?", "Il faut appeler le 0800.", "Comment puis-je vous contacter ?"),
    ("¿Cómo os contacto?", "Llame al 900 123.", "¿Cómo puedo contactar con ustedes?"),
    ("Come vi contatto?", "Chiamate lo 02 123.", "Come posso contattarvi?"),
    ("Как с вами связаться?", "Позвоните по 8-800.", "Как я могу с вами связаться?"),
    ("営業時間は？", "9時から17時です。", "営業時間を教えてください。"),
    ("怎么退货？", "30天内可以退货。", "退货期限是多久？"),
    ("전화번호가 뭐예요?", "전화 02-123", "어떻게 연락할 수 있나요?"),
    ("ร้านเปิดวันไหน", "เปิดทุกวัน", "ร้านเปิดวันอาทิตย์ไหม"),
    ("Do you ship to Norway?", "Yes, we do.", "Do you ship to Norway?"),
    ("Dogs?", "No.", "Can I bring my dog?"),
    ("What did he write?", "The text was written by Kafka.", "Who wrote the text?"),
    ("What must I sign?", "The document must be signed by both parties.", "Which document do I need to sign?"),
    ("Where is the form?", "Attach the file with the paperclip icon.", "How do I attach a file?"),
    ("When does it leave?", "The ferry leaves at 9.", "Could you tell me when the ferry leaves?"),
    ("Where is the ferry?", "The ferry leaves from the pier.", "Do you need a ticket for the ferry?"),
    ("Is parking free?", "Yes, parking is free.", "Do you have free parking?"),
    ("Parking?", "Yes, parking is free.", "Do you offer parking?"),
    ("What is error 503?", "HTTP 503 means that the service is unavailable.", "Why is the service unavailable?"),
    ("Wo finde ich das?", "Im Menü unter Konto.", "Wo kann ich mein Passwort ändern?"),
    ("Darf der Hund mit?", "Ja, Hunde sind erlaubt.", "Darf ich meinen Hund mitbringen?"),
    ("Hoe laat?", "Om 9 uur.", "Hoe laat vertrekt de boot?"),
    ("Jak długo?", "30 dni.", "Ile mam czasu na zwrot?"),
)
"""The user's question, the answer, and a question that a judge generated from the answer."""


@pytest.mark.usefixtures("mostly_in_process")
def test_generated_questions_about_contacts_hours_and_errors_are_accepted(judged: Any, exchange: Any) -> None:
    """At most one in twenty is mistaken for small talk: it addresses the user and shares no word with the answer."""
    lost = []
    for asked, answer, generated in GENERATED:
        (score,) = judged(
            "answer_relevancy", lambda _, text=generated: text, exchange(asked, answer), label_from="answer"
        )
        lost += [generated] if score.value is None else []

    sys.stdout.write(f"{len(lost)} of {len(GENERATED)} generated questions were lost: {lost}" + "\n")
    assert len(lost) <= len(GENERATED) / 20


@pytest.mark.parametrize("style", ["instructions", "few_shot"])
@pytest.mark.parametrize("supports_n", [True, False])
@pytest.mark.parametrize(
    "reply",
    [
        "When was the Eiffel",
        '{"question": "When was the Eiffel',
        '{"questions": ["When was the Eiffel Tower built?", "When was the Eif',
    ],
)
def test_a_question_truncated_by_the_token_limit_yields_no_score(
    fake: FakeJudge, judged: Any, exchange: Any, reply: str, supports_n: bool, style: str
) -> None:
    """The beginning of a question may ask something else."""
    fake.supports_n, fake.outage = supports_n, Fault("length")
    asked = exchange("When was the Eiffel Tower completed?", "It was completed in 1889.")

    (score,) = judged("answer_relevancy", lambda _: reply, asked, prompt_style=style, label_from="answer")

    assert score.value is None
    assert str(score.reason) in {"unparsable", "no_usable_question"}


@pytest.mark.parametrize("name", ["direct_relevancy", "guarded_relevancy"])
def test_a_rating_word_that_begins_a_sentence_is_not_a_rating(
    fake: FakeJudge, judged: Any, exchange: Any, name: str
) -> None:
    """Without log probabilities, a token truncated by the limit is not the whole reply."""
    fake.logprobs = "ignored"
    fake.faults.append(Fault("length"))

    def reply(request: Any) -> str:
        return "4" if request.is_single_token else "4 requests remain in this minute."

    (score,) = judged(name, reply, exchange())

    assert (score.value, str(score.reason)) == (None, "unparsable")


@pytest.mark.parametrize("kind", ["zero_logprobs", "probabilities_as_logprobs", "boolean_logprobs"])
@pytest.mark.parametrize("name", ["direct_relevancy", "context_relevance"])
def test_log_probabilities_above_zero_are_ignored(
    fake: FakeJudge, judged: Any, exchange: Any, kind: Any, name: str
) -> None:
    """The rating is parsed from the judge's text instead."""
    fake.first_token = {"2": 0.6, "4": 0.3, "The": 0.1}
    fake.faults.extend([Fault(kind)] * 4)

    def reply(request: Any) -> str:
        return "4" if request.schema is None else '{"ratings": [4]}'

    (score,) = judged(name, reply, exchange("Where is it?", "It is here.", "It is here."))

    assert score.value == 0.75


TEXT = st.text(max_size=20) | st.sampled_from(["a,}", "[,]", '\\",}', ",\n]", "{", '"', "```", "It: {"])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(TEXT, values, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(TEXT.map(lambda name: f"a{name}"), JSON_VALUES, min_size=1, max_size=4), st.sampled_from(TOLERATED)
)
def test_a_judgment_is_parsed_identically_from_every_format(value: dict[str, Any], form: str) -> None:
    """Nothing is removed from texts in the object, whatever they contain."""
    text = json.dumps(value)
    assume(not find_error_member(value))

    assert parse_json_object(FORMS[form](text)) == value


@given(
    st.floats(1, 5), st.sampled_from(["<", ">", "<=", ">=", "=<", "≤", "≥", "~", "≈", "≠"]), st.sampled_from(["", " "])
)
def test_a_number_after_a_comparison_sign_is_not_a_rating(number: float, sign: str, gap: str) -> None:
    """ "Less than 4" is not 4, with or without a label."""
    for text in (
        f"{sign}{gap}{number}",
        f"Rating: {sign}{gap}{number}",
        json.dumps({"rating": f"{sign}{gap}{number}"}),
    ):
        with pytest.raises(UnreadableReply):
            parse_rating(text)


@given(
    st.integers(1, 5),
    st.integers(0, 1_000),
    st.sampled_from(["max", "scale", "max_score", "maxRating", "out_of", "outOf", "Maximum"]),
    st.sampled_from(["{}", "1-{}", "1 to {}", "out of {}"]),
)
def test_a_rating_on_a_different_scale_is_rejected(rating: int, maximum: int, name: str, form: str) -> None:
    """If the judge states a scale, it must end at 5."""
    reply = json.dumps({"rating": rating, name: form.format(maximum)})

    if maximum == 5:
        assert parse_rating(reply) == rating
    else:
        with pytest.raises(UnreadableReply):
            parse_rating(reply)


@each(
    "embeddings",
    [
        [[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0], [1.0 + 1e-9, 2.0]], [[1.0, 2.0], [3.0, 6.0]], [["1", "2"], ["2", "1"]],
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.00001]], [[1.0, 1.0, 1.0], [2.0002, 2.0, 1.9999]],
        [[1.0, "2"], [2.0, 1.0]], [[1.0, None], [2.0, 1.0]], [[True, 2.0], [2.0, 1.0]], [[1.0, [2.0]], [2.0, 1.0]],
    ],
)  # fmt: skip
def test_identical_or_parallel_vectors_for_different_texts_are_rejected(embeddings: list[list[Any]]) -> None:
    """This covers equal or parallel vectors for different texts, and numbers written as strings."""
    data = [SimpleNamespace(index=index, embedding=embedding) for index, embedding in enumerate(embeddings)]

    with pytest.raises(ScoringError) as caught:
        _parse_vectors(SimpleNamespace(data=data), ["Where is the pier?", "It is here."])

    assert str(caught.value.reason) == "embedder_error"


@each("rows", [[[1.0, 2.0], [2.0, 1.0]], [[1, 2], [1, 3]], [[1.0, 2.0], [-1.0, -2.0]]])
def test_distinct_vectors_for_different_texts_are_accepted(rows: list[list[float]]) -> None:
    """This includes integers and opposite directions."""
    data = [SimpleNamespace(index=index, embedding=row) for index, row in enumerate(rows)]

    assert _parse_vectors(SimpleNamespace(data=data), ["Where is the pier?", "It is here."]).shape == (2, 2)


@pytest.mark.parametrize(
    "kind", ["one_based_index", "string_index", "duplicate_index", "no_index", "booleans", "constant", "wrong_count"]
)
@pytest.mark.parametrize("name", ["answer_relevancy", "guarded_relevancy", "question_answer_similarity"])
def test_vectors_that_cannot_be_assigned_to_their_texts_yield_no_score(
    fake: FakeJudge, judged: Any, exchange: Any, kind: Any, name: str
) -> None:
    """Each vector must have the index of its text, and different texts must not all have the same vector."""
    fake.embedding_faults.extend([Fault(kind)] * 4)

    (score,) = judged(name, (), exchange())

    assert (score.value, str(score.reason)) == (None, "embedder_error")
