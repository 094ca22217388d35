"""Refusal rules: they match noncommittal answers and no others."""

# ruff: noqa: RUF001 - sentences of many languages

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

from germane.scorers.refusals.rules import find_noncommittal, split_into_sentences

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
    "I don't have that answer.",
    "I don't have that detail in front of me.",
    "I do not have any record of such a rule.",
    "I don't have a source for this.",
    "I don't have details about that programme.",
    "I do not have specific recommendations for you.",
    "I do not have the necessary information to answer.",
    "I don't have the ability to check the weather.",
    "I don't have current figures.",
    "I don't have any evidence about this.",
    "I don't have any reference to that film.",
    "I do not have a definitive answer.",
    "I do not see any mention of it.",
    "I don't think I can answer that.",
    "I do not know which of the two is older.",
    "I wouldn't know.",
    "I couldn't tell you.",
    "I can't tell from the text.",
    "I can't say for sure.",
    "I cannot find that.",
    "I cannot recommend a lawyer.",
    "I cannot offer an opinion on this.",
    "I cannot predict the price.",
    "I cannot give legal advice.",
    "I cannot provide a definitive answer.",
    "I cannot provide the exact number of visitors.",
    "I can't give you an exact number.",
    "I can only answer questions about the library.",
    "I'm unable to answer.",
    "I am unable to provide the name of the architect.",
    "I am unable to locate the opening hours.",
    "I was unable to find the opening hours.",
    "We were unable to locate that record.",
    "Unable to answer.",
    "Cannot answer.",
    "Can't answer that one.",
    "Sorry, I have no answer for that.",
    "Sorry, no information is available on that.",
    "Sorry, that's not something I know.",
    "Sorry, that is not something I can answer.",
    "That is not covered in the documents.",
    "That isn't covered in my sources.",
    "This is not specified.",
    "This is not mentioned anywhere.",
    "The year is not specified.",
    "The name of the architect is not mentioned in the passages.",
    "It isn't stated in the text.",
    "It does not say.",
    "The passage does not give a date.",
    "The passages don't go into that.",
    "None of the passages answer this.",
    "None of the sources says so.",
    "There is nothing in the documents about that.",
    "There is nothing about parking in the handbook.",
    "I could find nothing on this subject.",
    "No mention of this in the text.",
    "No information available.",
    "No information found.",
    "The answer is not in the text.",
    "The answer is not available.",
    "The answer to this question is unknown.",
    "The question cannot be answered from the documents.",
    "This question can't be answered with the given context.",
    "Your question is not clear.",
    "It is unclear what you are referring to.",
    "It is not clear from the text.",
    "It's not possible to determine the winner from the text.",
    "It's impossible to know.",
    "I lack the information to answer.",
    "I lack sufficient context.",
    "I have limited information on this.",
    "My sources do not cover this.",
    "My knowledge base doesn't contain this.",
    "I would need more information to answer that.",
    "More information is needed to answer this.",
    "More context is required.",
    "I'd have to check.",
    "I am not aware of any such rule.",
    "I've never heard of it.",
    "I have not been able to find this.",
    "I haven't come across that.",
    "I did not find anything relevant.",
    "I didn't understand the question.",
    "I don't understand.",
    "I don't get what you mean.",
    "I don't recall.",
    "I prefer not to answer.",
    "I must decline.",
    "I am not permitted to share this.",
    "I'm not qualified to give medical advice.",
    "I am not in a position to answer.",
    "I'm sorry, but your question is too vague.",
    "Sorry, but I am not able to respond to that.",
    "I apologize, but I do not have specific information regarding your query.",
    "Based on the provided passages, I do not have enough to answer.",
    "According to the documents, there is no specific information on this.",
    "The information you are looking for is not in the provided documents.",
    "I do not have information about the second edition, only about the first.",
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
    "Your employer may not open your letters.",
    "You cannot be forced to sign.",
    "The landlord cannot raise the rent twice a year.",
    "No, a tenant can't be evicted without notice.",
    "There is nothing to pay.",
    "Nothing is due before March.",
    "None of the rooms has a balcony.",
    "None of the trains stop there on Sundays.",
    "No one knows who wrote the poem; scholars have proposed three names.",
    "I don't think so; the shop closes at six.",
    "I don't believe that is allowed.",
    "It is not possible to pay by cheque.",
    "It's impossible to reach the summit in winter.",
    "You need more memory.",
    "More information is available on the website.",
    "The list is not sorted.",
    "The window isn't covered by the guarantee.",
    "Theft is not covered.",
    "Dental care is not covered.",
    "That is not permitted.",
    "Smoking is not allowed.",
    "The device does not have a battery.",
    "The text does not wrap unless you set the option.",
    "We do not have a minimum order.",
    "We don't have a branch in Lyon.",
    "I can only recommend the red one.",
    "The report gives no date before 1900, so it is older than that.",
    "No data is stored.",
    "No data leaves the device.",
    "Records without a key cannot be found by search.",
    "The file cannot be found on a mounted disk if the index is stale; rebuild the index.",
    "The museum does not list prices online; a ticket costs nine euros.",
    "No answer key is included with the workbook.",
    "The key cannot be determined by brute force in a human lifetime.",
    "The name was not given at birth but chosen later.",
    "The exact date is not known, but it was before 1450.",
    "Sorry, the last bus has left.",
    "Not sure-footed on ice, the animal avoids glaciers.",
    "You would have to ask your doctor for a prescription first.",
    "You should check the tyre pressure monthly.",
    "The sources of the river lie in the Alps.",
    "The documents you need are a passport and a photo.",
    "The passages do not cross the border.",
    "I have limited the list to ten entries.",
    "You must not share this key.",
    "The speed limit is not enforced at night.",
    "Members can decline the offer.",
    "It does not rain in July.",
    'It does not say "closed" on the door when it is open.',
    "Unable to stop, the ship hit the pier.",
    "Refunds are not available for opened items.",
    "Parking is not available at the venue.",
    "The drug is not approved.",
    "The answer is no.",
    "The answer is 42.",
    "It depends on the size of the order.",
    "Die Rückgabe ist nach 30 Tagen nicht mehr möglich.",
    "No se puede devolver un producto abierto.",
    "Les animaux ne sont pas admis.",
    "营业时间是上午九点到下午六点。",
    "Магазин закрыт по понедельникам.",
]


@each("answer", [*NOT_KNOWING, *OTHER_LANGUAGES])
def test_refusals_and_statements_of_ignorance_are_detected(answer: str) -> None:
    """The rules cover English and a dozen other languages."""
    found = find_noncommittal(answer)

    assert found is not None
    assert found.text in answer.replace("’", "'")


@each("answer", ASKING_BACK)
def test_clarifying_questions_are_detected(answer: str) -> None:
    """The rules recognize the question marks of several scripts."""
    found = find_noncommittal(answer)

    assert found is not None
    assert "clarifying question" in found.rule


@each("answer", COMMITTAL)
def test_actual_answers_are_not_mistaken_for_refusals(answer: str) -> None:
    """A word such as "cannot", an apology, a partial answer or a polite closing is not a refusal."""
    assert find_noncommittal(answer) is None


@each(
    "answer",
    [
        "I don't know. " * 70_000,
        "? " * 500_000,
        "a" * 1_000_000,
        "I do not " + "very " * 200_000,
        '"' * 100_000,
        "\n" * 9,
    ],
)
def test_hostile_answers_do_not_slow_down_refusal_rules(answer: str) -> None:
    """A slow check would exceed pytest's time limit."""
    find_noncommittal(answer)
    find_noncommittal(answer[:4_000])


@given(st.text(st.sampled_from('a b.!?;。؟\n"»*'), max_size=40))
def test_a_sentence_ends_at_the_first_mark_that_ends_one(text: str) -> None:
    """A mark inside a word, such as that of "3.5", ends no sentence."""
    end = r"[.!?؟。？！;]+[\"'”»)*_]*(?=\s|\Z)|[。？！؟]+|\n+|\Z"
    sentences = [found[0].strip() for found in re.finditer(f".+?(?:{end})", text, re.DOTALL)]

    assert list(split_into_sentences(text)) == [sentence for sentence in sentences if sentence.strip(' \n"»*')]
