"""Hand-written RAG applications: a span of a web framework with plain model calls under it, in any language.

A shape is the list of calls of one application. It is written in the attributes of an instrumentation, so that a test
can vary the texts, the instrumentation, and the maximum length of attributes independently.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.spans.samples import Node, node, trace

from germane.recognizers import SpanData


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The texts of one conversation in one language."""

    question: str
    query: str
    """The question as a query for a search."""
    documents: tuple[str, str]
    answer: str
    draft: str
    translated: str
    """The answer in another language."""
    title: str
    followups: tuple[str, str]
    parts: tuple[str, str]
    """Questions about parts of the question."""
    replies: tuple[str, str]
    """Replies to the questions about parts."""
    fact: str
    """A fact about the user in the question."""
    verdict: str
    """A sentence that judges the answer."""
    labels: tuple[str, str, str]
    """Labels of documents, a question and an answer."""
    speakers: tuple[str, str]
    """Labels of the user and the assistant."""
    instruction: str


LANGUAGES: Mapping[str, Language] = {
    "English": Language(
        question="How long may I keep a borrowed telescope, and can I renew the loan?",
        query="telescope loan period renewal",
        documents=(
            "Telescopes are lent for 14 days. A deposit of 80 dollars is due at the desk.",
            "Loans of instruments can be renewed twice by phone unless another member has reserved them.",
        ),
        answer="You may keep it for 14 days and renew the loan twice by phone, unless somebody has reserved it.",
        draft="For 14 days, and it can be renewed.",
        translated="Du darfst es 2 Wochen behalten und zweimal telefonisch verlängern, wenn es frei ist.",
        title="Borrowing a telescope",
        followups=("How high is the deposit?", "Can I reserve one online?"),
        parts=("For how long is a telescope lent?", "Can the loan be renewed?"),
        replies=("It is lent for 14 days.", "Yes, twice by phone."),
        fact="The user wants to borrow a telescope.",
        verdict="The reply is complete and correct.",
        labels=("Context", "Question", "Answer"),
        speakers=("User", "Assistant"),
        instruction="Use only what is given below.",
    ),
    "German": Language(
        question="Welche Unterlagen brauche ich für die Anmeldung meines Hundes und was kostet die Steuer?",
        query="Hund anmelden Unterlagen Hundesteuer Höhe",
        documents=(
            "Für die Anmeldung eines Hundes werden der Heimtierausweis und ein Nachweis der Haftpflicht verlangt.",
            "Die Hundesteuer beträgt 96 Euro im Jahr, für jeden weiteren Hund 144 Euro.",
        ),
        answer="Sie brauchen den Heimtierausweis und den Nachweis der Haftpflicht; die Steuer beträgt 96 Euro im Jahr.",
        draft="Sie brauchen den Heimtierausweis.",
        translated="You need the pet passport and proof of liability insurance; the tax is 96 euros a year.",
        title="Anmeldung eines Hundes",
        followups=("Wo kann ich den Hund anmelden?", "Gibt es Ermäßigungen?"),
        parts=("Welche Unterlagen werden verlangt?", "Wie hoch ist die Hundesteuer?"),
        replies=("Verlangt werden Heimtierausweis und Haftpflicht.", "Sie beträgt 96 Euro im Jahr."),
        fact="Die Person besitzt einen Hund.",
        verdict="Alles stimmt und ist belegt.",
        labels=("Kontext", "Frage", "Antwort"),
        speakers=("Nutzer", "Helfer"),
        instruction="Antworte kurz und nur mit den Angaben.",
    ),
    "Spanish": Language(
        question="¿Puedo cambiar la fecha de mi cita médica y con cuánta antelación debo avisar?",
        query="cambiar cita médica antelación aviso",
        documents=(
            "Las citas se pueden cambiar una sola vez desde la aplicación o por teléfono.",
            "El aviso debe llegar 48 horas antes; de lo contrario se cobran 15 euros.",
        ),
        answer="Sí, puede cambiarla una sola vez desde la aplicación o por teléfono, avisando 48 horas antes.",
        draft="Sí, con 48 horas de aviso.",
        translated="Yes, you can change it once in the app or by phone if you give 48 hours' notice.",
        title="Cambio de cita médica",
        followups=("¿Cuánto se cobra si aviso tarde?", "¿Puedo cancelar la cita?"),
        parts=("¿Se puede cambiar la fecha?", "¿Con cuánta antelación hay que avisar?"),
        replies=("Se puede cambiar una sola vez.", "Hay que avisar 48 horas antes."),
        fact="La persona tiene una cita médica.",
        verdict="Todo es correcto.",
        labels=("Contexto", "Pregunta", "Respuesta"),
        speakers=("Usuario", "Asistente"),
        instruction="Usa solo los datos dados.",
    ),
    "Chinese": Language(
        question="我可以把未使用的年假推迟到明年吗,最多可以推迟几天?",
        query="年假 推迟 明年 天数",
        documents=(
            "员工每年有十五天年假。未使用的年假最多可以推迟五天到下一年度。",
            "推迟的年假必须在三月三十一日之前使用,并由经理书面批准。",
        ),
        answer="可以,最多推迟五天到下一年度,但必须在三月三十一日之前使用,并由经理书面批准。",
        draft="可以推迟五天。",
        translated="Yes, up to five days can be moved to the next year if the manager approves it in writing.",
        title="年假推迟",
        followups=("谁批准推迟?", "可以折算成工资吗?"),
        parts=("年假可以推迟吗?", "最多可以推迟几天?"),
        replies=("未使用的年假可以推迟。", "最多可以推迟五天。"),
        fact="用户是公司的员工。",
        verdict="内容完整正确。",
        labels=("背景资料", "问题", "回答"),
        speakers=("用户", "助手"),
        instruction="只根据下面的内容回答。",
    ),
    "Hindi": Language(
        question="क्या मैं अपना पुस्तकालय कार्ड ऑनलाइन नवीनीकृत कर सकता हूँ और शुल्क कितना है?",
        query="पुस्तकालय कार्ड नवीनीकरण ऑनलाइन शुल्क",
        documents=(
            "पुस्तकालय कार्ड का नवीनीकरण वेबसाइट पर पहचान पत्र के साथ किया जा सकता है।",
            "नवीनीकरण का शुल्क पचास रुपये है और कार्ड दो वर्ष तक मान्य रहता है।",
        ),
        answer="हाँ, नवीनीकरण वेबसाइट पर पहचान पत्र के साथ किया जा सकता है, और शुल्क पचास रुपये है।",
        draft="हाँ, वेबसाइट पर किया जा सकता है।",
        translated="Yes, it can be renewed on the website with an identity card, and the fee is fifty rupees.",
        title="पुस्तकालय कार्ड का नवीनीकरण",
        followups=("कार्ड कब तक मान्य है?", "क्या बच्चों के लिए छूट है?"),
        parts=("नवीनीकरण कहाँ होता है?", "शुल्क कितना है?"),
        replies=("नवीनीकरण वेबसाइट पर होता है।", "शुल्क पचास रुपये है।"),
        fact="उपयोगकर्ता के पास एक कार्ड है।",
        verdict="सब कुछ सही लिखा है।",
        labels=("संदर्भ", "प्रश्न", "उत्तर"),
        speakers=("उपयोगकर्ता", "सहायक"),
        instruction="केवल दी गई जानकारी से उत्तर दें।",
    ),
    "Arabic": Language(
        question="كم يوما يستغرق تجديد جواز السفر وما هي الرسوم المطلوبة؟",
        query="تجديد جواز السفر المدة الرسوم",
        documents=(
            "يستغرق تجديد جواز السفر عشرة أيام عمل من تاريخ تقديم الطلب.",
            "رسوم التجديد ثلاثمئة درهم، ويضاف إليها خمسون درهما للخدمة العاجلة.",
        ),
        answer="يستغرق التجديد عشرة أيام عمل من تاريخ تقديم الطلب، ورسوم التجديد ثلاثمئة درهم.",
        draft="يستغرق عشرة أيام عمل.",
        translated="Renewal takes ten working days from the application, and the fee is three hundred dirhams.",
        title="تجديد جواز السفر",
        followups=("هل توجد خدمة عاجلة؟", "أين أقدم الطلب؟"),
        parts=("كم يستغرق التجديد؟", "ما هي الرسوم؟"),
        replies=("يستغرق عشرة أيام عمل.", "الرسوم ثلاثمئة درهم."),
        fact="المستخدم لديه جواز قديم.",
        verdict="كل شيء صحيح.",
        labels=("السياق", "السؤال", "الجواب"),
        speakers=("المستخدم", "المساعد"),
        instruction="أجب فقط من المعلومات المعطاة.",
    ),
}


@dataclass(frozen=True, slots=True)
class Call:
    """A model call: the system's message if there is one, messages of the user and the assistant, and the reply."""

    system: str
    messages: tuple[tuple[str, str], ...]
    reply: str
    model: str = "gpt-4o-mini"


def call(system: str, user: str, reply: str, **more: str) -> Call:
    """Return a call with one message of the user."""
    return Call(system, (("user", user),), reply, **more)


def _main(text: Language) -> Call:
    return call(f"{text.instruction}\n\n{text.labels[0]}:\n{_documents(text)}", text.question, text.answer)


def _documents(text: Language) -> str:
    return "\n".join(text.documents)


def _transcript(text: Language) -> str:
    user, assistant = text.speakers
    return f"{user}: {text.question}\n{assistant}: {text.answer}"


def _asked(text: Language) -> tuple[tuple[str, str], ...]:
    return (("user", text.question), ("assistant", text.answer))


def _first_turn(text: Language) -> tuple[tuple[str, str], ...]:
    return (("user", text.parts[0]), ("assistant", text.replies[0]))


def _begun(text: Language) -> str:
    return f"{text.instruction}\n{text.labels[1]}: {text.question}\nThought:"


BEFORE: Mapping[str, Callable[[Language], list[Call]]] = {
    "rewrite": lambda t: [call("Rewrite as a search query.", t.question, t.query)],
    "guard": lambda t: [call("Classify the message.", t.question, "safe")],
    "router": lambda t: [call("Which index? One word.", t.question, "rules")],
    "moderation": lambda t: [call("Check the policy.", t.question, '{"flagged": false, "categories": []}')],
    "hypothetical": lambda t: [call("Write a passage that could answer it.", t.question, t.draft)],
    "fact": lambda t: [call("Extract facts.", t.question, json.dumps([t.fact], ensure_ascii=False))],
}
"""Calls for other purposes that may come before the answer."""
AFTER: Mapping[str, Callable[[Language], list[Call]]] = {
    "title": lambda t: [call("Give it a title.", _transcript(t), t.title, model="gpt-4o-nano")],
    "title of messages": lambda t: [Call("", (*_asked(t), ("user", t.instruction)), t.title)],
    "title of question": lambda t: [call("Give it a title.", t.question, t.title)],
    "followups": lambda t: [
        Call("Suggest.", (*_asked(t), ("user", "As JSON")), json.dumps(list(t.followups), ensure_ascii=False))
    ],
    "followups as lines": lambda t: [call("Suggest.", _transcript(t), "\n".join(f"- {q}" for q in t.followups))],
    "memory": lambda t: [call("Extract facts about the user.", _transcript(t), t.fact)],
    "memory as JSON": lambda t: [call("Extract facts.", _transcript(t), json.dumps({"facts": [t.fact]}))],
    "fact after messages": lambda t: [Call("Extract facts about the user.", _asked(t), t.fact)],
    "guard after": lambda t: [call("Is this safe?", t.answer, "safe")],
    "verdict": lambda t: [call("Is it grounded?", f"{_documents(t)}\n{_transcript(t)}", t.verdict)],
    "score": lambda t: [call("Rate it from 1 to 5.", _transcript(t), "5")],
}
"""Calls for other purposes that may come after the answer."""
ANSWERS: Mapping[str, Callable[[Language], list[Call]]] = {
    "plain": lambda t: [_main(t)],
    "decompose": lambda t: [
        call("Split it.", t.question, json.dumps(list(t.parts), ensure_ascii=False)),
        *(call(f"{t.labels[0]}: {_documents(t)}", part, reply) for part, reply in zip(t.parts, t.replies, strict=True)),
        call(f"Combine.\n{t.replies[0]}\n{t.replies[1]}", t.question, t.answer),
    ],
    "draft and refine": lambda t: [
        call(f"{t.labels[0]}:\n{_documents(t)}", t.question, t.draft),
        call("Improve it.", f"{t.labels[1]}: {t.question}\nDraft: {t.draft}", t.answer),
    ],
    "tagged": lambda t: [
        call(
            "",
            f"<documents>{''.join(f'<document>{each}</document>' for each in t.documents)}</documents>\n"
            f"<question>{t.question}</question>\n{t.instruction}",
            t.answer,
        )
    ],
    "tagged in the language": lambda t: [
        call("", f"<{t.labels[0]}>\n{_documents(t)}\n</{t.labels[0]}>\n\n{t.question}", t.answer)
    ],
    "question first": lambda t: [call("", f"{t.question}\n\nUse these:\n{_documents(t)}", t.answer)],
    "question first, unlabeled": lambda t: [call("", f"{t.question}\n\n{_documents(t)}", t.answer)],
    "labeled": lambda t: [
        call("", f"{t.instruction}\n\n{t.labels[0]}: {_documents(t)}\n\n{t.labels[1]}: {t.question}", t.answer)
    ],
    "labeled with a label for the answer": lambda t: [
        call(
            "",
            f"{t.labels[0]}:\n{_documents(t)}\n\n{t.labels[1]}: {t.question}\n{t.labels[2]}:",
            t.answer,
        )
    ],
    "labeled, question first": lambda t: [
        call("", f"{t.labels[1]}: {t.question}\n\n{t.labels[0]}:\n{_documents(t)}", t.answer)
    ],
    "rules": lambda t: [call("", f"Rules: {t.instruction}\n{_documents(t)}\nUser: {t.question}", t.answer)],
    "task": lambda t: [
        call(
            "",
            f"Current task: {t.question}\n\nThis is the expected outcome: a short text\n"
            f"You must return the whole text.\n\nThis is what you know:\n{_documents(t)}\n\nBegin!",
            t.answer,
        )
    ],
    "one call for each document": lambda t: [
        *(
            call("", f"{t.labels[0]}: {document}\n{t.labels[1]}: {t.question}\n{t.labels[2]}:", reply)
            for document, reply in zip(t.documents, t.replies, strict=True)
        ),
        call("", f"{t.labels[0]}:\n{t.replies[0]}\n{t.replies[1]}\n\n{t.labels[1]}: {t.question}", t.answer),
    ],
    "second turn": lambda t: [
        call(
            "Rewrite.",
            f"{t.speakers[0]}: {t.parts[0]}\n{t.speakers[1]}: {t.replies[0]}\n{t.labels[1]}: {t.question}",
            t.query,
        ),
        Call(f"{t.labels[0]}: {_documents(t)}", (*_first_turn(t), ("user", t.question)), t.answer),
    ],
    "summary of the conversation": lambda t: [
        Call("Summarize.", _first_turn(t), t.fact),
        call(f"{t.fact}\n{t.labels[0]}: {_documents(t)}", t.question, t.answer),
    ],
    "summary of a transcript": lambda t: [
        call("Summarize.", f"{t.speakers[0]}: {t.parts[0]}\n{t.speakers[1]}: {t.replies[0]}", t.fact),
        call(f"{t.fact}\n{t.labels[0]}: {_documents(t)}", t.question, t.answer),
    ],
    "criticized draft": lambda t: [
        call(f"{t.labels[0]}:\n{_documents(t)}", t.question, t.draft),
        call("Criticize.", f"{t.labels[1]}: {t.question}\n{t.labels[2]}: {t.draft}", t.followups[0]),
        call(
            f"Improve it.\n{t.labels[0]}:\n{_documents(t)}",
            f"{t.labels[1]}: {t.question}\nDraft: {t.draft}\nCritique: {t.followups[0]}",
            t.answer,
        ),
    ],
    "shortened": lambda t: [
        call(f"{t.labels[0]}: {_documents(t)}", t.question, f"{t.answer} {t.replies[0]} {t.replies[1]}"),
        call("Shorten it.", f"{t.answer} {t.replies[0]} {t.replies[1]}", t.answer),
    ],
    "loop with a tool": lambda t: [
        call("", _begun(t), f"Thought: search\nAction: search[{t.query}]"),
        call("", f"{_begun(t)} search\nAction: search[{t.query}]\nObservation: {_documents(t)}\nThought:", t.answer),
    ],
    "grades of the documents": lambda t: [
        *(
            call("Is it relevant?", f"{document}\n\n{t.question}", grade)
            for document, grade in zip(t.documents, ("yes", "no"), strict=True)
        ),
        _main(t),
    ],
    "query of a database": lambda t: [
        call("Write SQL.", t.question, "SELECT text, price FROM rules WHERE id IN (SELECT id FROM tags WHERE x = 1);"),
        _main(t),
    ],
    "JSON": lambda t: [
        call("", json.dumps({"documents": t.documents, "question": t.question}, ensure_ascii=False), t.answer)
    ],
    "tagged in the language, question first": lambda t: [
        call(
            "",
            f"<{t.labels[1]}>{t.question}</{t.labels[1]}>\n<{t.labels[0]}>\n{_documents(t)}\n</{t.labels[0]}>",
            t.answer,
        )
    ],
    "brackets": lambda t: [
        call("", f"[{t.labels[0]}]\n{_documents(t)}\n\n[{t.labels[1]}]\n{t.question}\n\n[{t.labels[2]}]", t.answer)
    ],
    "numbered documents": lambda t: [
        call("", f"[1] {t.documents[0]}\n[2] {t.documents[1]}\n\n{t.labels[1]}: {t.question}", t.answer)
    ],
    "example": lambda t: [
        call(
            "",
            f"{t.labels[1]}: {t.parts[0]}\n{t.labels[2]}: {t.replies[0]}\n\n"
            f"{t.labels[0]}: {_documents(t)}\n{t.labels[1]}: {t.question}\n{t.labels[2]}:",
            t.answer,
        )
    ],
    "headings": lambda t: [
        call("", f"# {t.labels[0]}\n\n{_documents(t)}\n\n# {t.labels[1]}\n\n{t.question}", t.answer)
    ],
}
"""Calls that give the answer."""
TRANSLATED = "translation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """An application with the expected pair."""

    name: str
    calls: tuple[Call, ...]
    question: str
    answer: str
    documents: tuple[str, ...]


def shapes() -> Iterable[Shape]:
    """Yield each way to answer alone, and the plain one with calls before and after, in each language."""
    for language, text in LANGUAGES.items():

        def shape(
            name: str, calls: Sequence[Call], answer: str = text.answer, text: Language = text, language: str = language
        ) -> Shape:
            title, documents = f"{language}, {name}", text.documents
            return Shape(name=title, calls=tuple(calls), question=text.question, answer=answer, documents=documents)

        for name, make in ANSWERS.items():
            yield shape(name, make(text))
        for name, make in BEFORE.items():
            yield shape(f"{name} before", [*make(text), _main(text)])
        for name, make in AFTER.items():
            yield shape(f"{name} after", [_main(text), *make(text)])
            yield shape(f"guard, labeled, {name}", [*BEFORE["guard"](text), *ANSWERS["labeled"](text), *make(text)])
        translate = call("Translate.", text.answer, text.translated)
        yield shape("translation", [_main(text), translate], text.translated)
        rewritten = call(f"{text.labels[0]}: {_documents(text)}", text.query, text.answer)
        yield shape("rewritten question", [*BEFORE["rewrite"](text), rewritten])
        yield shape("draft, refine, title", [*ANSWERS["draft and refine"](text), *AFTER["title"](text)])


def _openinference(each: Call) -> dict[str, Any]:
    messages = [*([("system", each.system)] if each.system else []), *each.messages]
    request = {"model": each.model, "messages": [{"role": role, "content": text} for role, text in messages]}
    reply = {"id": "chatcmpl-1", "choices": [{"index": 0, "message": {"role": "assistant", "content": each.reply}}]}
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": each.model,
        "input.value": json.dumps(request),
        "output.value": json.dumps(reply),
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": each.reply,
    }
    for number, (role, text) in enumerate(messages):
        attributes[f"llm.input_messages.{number}.message.role"] = role
        attributes[f"llm.input_messages.{number}.message.content"] = text
    return attributes


def _openllmetry(each: Call) -> dict[str, Any]:
    messages = [*([("system", each.system)] if each.system else []), *each.messages]
    attributes = {
        "llm.request.type": "chat",
        "gen_ai.request.model": each.model,
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": each.reply,
    }
    for number, (role, text) in enumerate(messages):
        attributes[f"gen_ai.prompt.{number}.role"] = role
        attributes[f"gen_ai.prompt.{number}.content"] = text
    return attributes


def _genai(each: Call) -> dict[str, Any]:
    def message(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "parts": [{"type": "text", "content": text}]}

    messages = [*([("system", each.system)] if each.system else []), *each.messages]
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": each.model,
        "gen_ai.input.messages": json.dumps([message(*pair) for pair in messages], ensure_ascii=False),
        "gen_ai.output.messages": json.dumps([message("assistant", each.reply)], ensure_ascii=False),
    }


FORMS: Mapping[str, tuple[str, Callable[[Call], dict[str, Any]]]] = {
    "OpenInference": ("openinference.instrumentation.openai", _openinference),
    "OpenLLMetry": ("opentelemetry.instrumentation.openai.v1", _openllmetry),
    "OpenTelemetry": ("opentelemetry.instrumentation.genai.openai", _genai),
}
"""Scopes and attributes of the instrumentations."""
WEB = {"http.request.method": "POST", "http.route": "/ask"}
"""Attributes of a web request."""


def spans_of(calls: Iterable[Call], form: str, limit: int | None = None) -> tuple[SpanData, ...]:
    """Return the trace of a web request with some calls, whose attributes are cut to a maximum length."""
    scope, attributes = FORMS[form]

    def cut(value: Any) -> Any:
        return value[:limit] if isinstance(value, str) else value

    nodes: list[Node] = [
        node("chat", {name: cut(value) for name, value in attributes(each).items()}, scope=scope) for each in calls
    ]
    return trace("opentelemetry.instrumentation.asgi", node("POST /ask", WEB, *nodes))
