"""Answers that do not commit themselves are found by rules; answers that do are left alone."""

# ruff: noqa: RUF001 - sentences of many languages

from __future__ import annotations

import time

import pytest

from germane.scorers import find_noncommittal

NOT_KNOWING = [
    "I don't know.",
    "I do not know",
    "i dont know, sorry",
    "I'm sorry, but I don't have that information.",
    "I’m sorry, I don’t have enough context to answer that.",
    "Sorry, I couldn't find anything about parking fees in the handbook.",
    "I am afraid I can't help with that.",
    "I cannot answer this question based on the provided context.",
    "Unfortunately, I am unable to provide medical advice.",
    "We currently do not have any details on the new tariff.",
    "I have no information about the warranty of this model.",
    "The documents do not mention a dress code.",
    "The provided context does not contain information about ferry times.",
    "There is no information on visiting hours in the text.",
    "There's no mention of pets in the rental agreement.",
    "It is not specified who signs the form.",
    "It's unclear whether the offer still holds.",
    "The fee is not mentioned in the document.",
    "This information is not available.",
    "I'm not sure.",
    "I'm not certain about that, sorry!",
    "No idea.",
    "As an AI language model, I have no personal opinions.",
    "That is beyond my knowledge.",
    "I can't share that information.",
    "I'm not able to discuss that topic.",
    "I won't be able to help with this request.",
    "It cannot be determined from the passage.",
    "No relevant documents were found.",
    "Not enough information to answer.",
    "I don't have access to your account, so I can't tell. Please contact support at the desk.",
    "I don't know. However, you may want to check the website for more information.",
    "Could you please provide more details about the device. Then I will be happy to help.",
    "Please clarify which invoice you mean.",
    "**I don't know.**",
    '"I don\'t know."',
    "Not sure.",
    "This information is not provided in the manual.",
    "There isn't any information about that.",
    "N/A",
    "...",
    "…",
    "unknown",
    "I'm sorry.",
    "My apologies!",
    "I do not have data on the harbour's depth. Let me know if there is anything else.",
    "Regarding the harbour, I don't have specific information on that.",
]

ASKING_BACK = [
    "Which printer do you mean?",
    "Are you asking about the summer timetable or the winter one?",
    "Could you tell me which version you use?",
    "There are two museums in town. Which one are you referring to?",
    "Do you mean the blue form, or something else?",
    "Sorry, what do you mean by that?",
    "How can I help you today?",
    "您指的是哪一个?",
    "どの機種ですか？",
    "¿A qué pedido se refiere?",
    "Welches Gerät meinen Sie?",
    "ما هو رقم الطلب؟",
]

OTHER_LANGUAGES = [
    "Das weiß ich leider nicht.",
    "Leider kann ich dazu nichts sagen, ich habe keine Angaben.",
    "Dazu habe ich leider keine Informationen.",
    "Ich kann diese Frage nicht beantworten.",
    "Je ne sais pas.",
    "Je n'ai pas d'informations à ce sujet.",
    "Désolé, je ne peux pas répondre à cette question.",
    "No lo sé.",
    "Lo siento, no tengo información sobre eso.",
    "No puedo responder a esa pregunta.",
    "Non lo so.",
    "Mi dispiace, non ho informazioni su questo.",
    "Não sei.",
    "Não tenho informações sobre isso.",
    "Dat weet ik niet.",
    "Nie wiem.",
    "Bilmiyorum.",
    "Я не знаю.",
    "К сожалению, у меня нет информации об этом.",
    "抱歉，我不知道。",
    "文档中没有提到价格。",
    "申し訳ありませんが、わかりません。",
    "죄송합니다. 잘 모르겠습니다.",
    "لا أعرف.",
    "मुझे नहीं पता।",
]

COMMITTAL = [
    "Yes.",
    "No.",
    "42",
    "Paris",
    "None",
    "👍",
    "The ferry leaves from pier four, behind the fish market.",
    "No, you cannot bring a bicycle on board.",
    "You cannot return opened items.",
    "We cannot accept returns after thirty days, but we can offer store credit.",
    "We can't ship to islands.",
    "Your landlord can't enter without notice.",
    "The feature is not available in Canada.",
    "Breakfast is not included in the price.",
    "Damage by water is not covered by the warranty.",
    "There is no fee.",
    "There is no evidence that the treatment works.",
    "The cause of the disease is unknown.",
    "If you don't know your PIN, press Forgot and follow the steps.",
    "If you are not sure which cable fits, look at the label under the socket.",
    'The song "I Don\'t Know" was released in 1971.',
    'The phrase "I cannot answer that" appears in the second act.',
    "Sorry for the wait! The parcel arrives on Tuesday.",
    "Sorry, but a nickname is not considered personal data.",
    "Unfortunately, the shop is closed on Mondays.",
    "I don't recommend the second route; take the coastal road, which is shorter and has fewer hills to climb.",
    "Please contact the front desk.",
    "We will not share your data with third parties.",
    "Your information is not disclosed to third parties.",
    "The provided warranty does not cover water damage.",
    "We don't have that colour in stock.",
    "We don't have wheelchair access.",
    "The phone works with any data plan.",
    "The pickup point is outside our main entrance.",
    "The plan comes with no data.",
    "You should restart the router. Does that help?",
    "Press and hold the button for ten seconds until the lamp turns green. Would you like to know more?",
    "Open Settings, choose Network and switch on the mobile hotspot. Is there anything else I can help you with?",
    (
        "To reset the thermostat, hold both arrows for five seconds, choose Factory from the menu, confirm with OK and "
        "wait until the display has gone dark and lit up again. Why wait, you ask?"
    ),
    (
        "You cannot cancel a flight within 24 hours of departure online. Before that, open My trips, choose the "
        "booking, press Cancel and follow the steps; the refund arrives within seven days on the card that was used. "
        "If the airline cancelled, you may choose between a refund and another flight at no cost."
    ),
    (
        "The monthly fee is nine euros, can be paid by card or invoice, and includes two guests at the weekend as well "
        "as the use of the sauna. I don't have information about the price for students."
    ),
    (
        "I don't have the exact figure for this year. In 2021, though, the city counted about 31,000 visitors in the "
        "botanical garden, roughly 4,000 more than the year before, most of them between May and September, when the "
        "glass houses stay open until nine in the evening."
    ),
    "Die Rückgabe ist nach 30 Tagen nicht mehr möglich.",
    "No se puede devolver un producto abierto.",
    "Les animaux ne sont pas admis.",
    "营业时间是上午九点到下午六点。",
    "Магазин закрыт по понедельникам.",
]


@pytest.mark.parametrize("answer", [*NOT_KNOWING, *OTHER_LANGUAGES])
def test_not_knowing_and_refusing_are_found(answer: str) -> None:
    """In English and a dozen other languages."""
    found = find_noncommittal(answer)

    assert found is not None
    assert found.text in answer.replace("’", "'")


@pytest.mark.parametrize("answer", ASKING_BACK)
def test_asking_back_is_found(answer: str) -> None:
    """With the question marks of several scripts."""
    found = find_noncommittal(answer)

    assert found is not None
    assert "question back" in found.rule


@pytest.mark.parametrize("answer", COMMITTAL)
def test_answers_that_commit_themselves_are_left_alone(answer: str) -> None:
    """A word such as "cannot", an apology, a partial answer or a closing courtesy is no refusal."""
    assert find_noncommittal(answer) is None


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know. " * 70_000,
        "? " * 500_000,
        "a" * 1_000_000,
        "I do not " + "very " * 200_000,
        '"' * 100_000,
        "\n" * 9,
    ],
    ids=["phrases", "marks", "one word", "nearly a phrase", "quotes", "nothing"],
)
def test_no_answer_takes_long(answer: str) -> None:
    """The time does not grow with what is hostile about a text."""
    started = time.perf_counter()

    find_noncommittal(answer)
    find_noncommittal(answer[:4_000])

    assert time.perf_counter() - started < 2
