"""Generated questions in forty languages, with and without a question mark."""

# ruff: noqa: E501, RUF001 - sentences of many languages

from __future__ import annotations

from tests.cases import each

from germane.scorers.prompting.question_parser import GeneratedQuestion

QUESTIONS = {
    "Amharic": ("ጫማዎችን ለመመለስ ስንት ቀን አለኝ?", "ጫማዎችን በስንት ቀን ውስጥ መመለስ እችላለሁ?", "ጫማዎችን ለመመለስ ጊዜው ስንት ቀን ነው?"),
    "Arabic": ("كم يوما لدي لإرجاع الحذاء؟", "خلال كم يوما يمكن إرجاع الحذاء؟", "ما هي مدة إرجاع الحذاء؟"),
    "Armenian": ("Քանի՞ օր ունեմ կոշիկները վերադարձնելու համար", "Որքա՞ն է կոշիկները վերադարձնելու ժամկետը", "Ե՞րբ կարող եմ վերադարձնել կոշիկները"),
    "Bengali": ("জুতা ফেরত দেওয়ার জন্য কত দিন আছে?", "কত দিনের মধ্যে জুতা ফেরত দেওয়া যায়?", "জুতা ফেরত দেওয়ার সময় কত দিন?"),
    "Bulgarian": ("Колко дни имам за връщане на обувки?", "До колко дни мога да върна обувки?", "Какъв е срокът за връщане на обувки?"),
    "Burmese": ("ဖိနပ်ပြန်ပေးရန် ဘယ်နှစ်ရက်ရှိသလဲ", "ဖိနပ်ကို ဘယ်နှစ်ရက်အတွင်း ပြန်ပေးနိုင်သလဲ", "ဖိနပ်ပြန်ပေးရန် အချိန်ဘယ်လောက်ရှိသလဲ"),
    "Chinese": ("我有多少天可以退鞋子?", "鞋子的退货期限是几天?", "多少天之内可以退鞋子?"),
    "Croatian": ("Koliko dana imam za povrat cipela?", "U koliko dana mogu vratiti cipele?", "Koji je rok za povrat cipela?"),
    "Czech": ("Kolik dní mám na vrácení bot?", "Do kolika dní mohu boty vrátit?", "Jaká je lhůta pro vrácení bot?"),
    "Danish": ("Hvor mange dage har jeg til at returnere sko?", "Inden for hvor mange dage kan jeg returnere sko?", "Hvad er fristen for at returnere sko?"),
    "Dutch": ("Hoeveel dagen heb ik om schoenen terug te sturen?", "Binnen hoeveel dagen kan ik schoenen terugsturen?", "Wat is de termijn om schoenen terug te sturen?"),
    "English": ("How many days do I have to return shoes?", "Within how many days can shoes be returned?", "What is the return period for shoes?"),
    "Estonian": ("Mitu päeva on mul aega kingi tagastada?", "Mitme päeva jooksul saan kingi tagastada?", "Milline on tähtaeg kingi tagastada?"),
    "Finnish": ("Montako päivää minulla on aikaa palauttaa kengät?", "Monenko päivän kuluessa voin palauttaa kengät?", "Mikä on aika palauttaa kengät?"),
    "French": ("Combien de jours ai-je pour rendre des chaussures ?", "En combien de jours puis-je rendre des chaussures ?", "Quel est le délai pour rendre des chaussures ?"),
    "Georgian": ("რამდენი დღე მაქვს ფეხსაცმლის დასაბრუნებლად?", "რამდენ დღეში შემიძლია ფეხსაცმლის დაბრუნება?", "რა ვადა აქვს ფეხსაცმლის დაბრუნებას?"),
    "German": ("Wie viele Tage habe ich für die Rückgabe von Schuhen?", "Innerhalb wie vieler Tage kann ich Schuhe zurückgeben?", "Welche Frist gilt für die Rückgabe von Schuhen?"),
    "Greek": ("Πόσες ημέρες έχω για να επιστρέψω παπούτσια;", "Σε πόσες ημέρες μπορώ να επιστρέψω παπούτσια;", "Ποια είναι η προθεσμία για να επιστρέψω παπούτσια;"),
    "Gujarati": ("જૂતા પરત કરવા માટે મારી પાસે કેટલા દિવસ છે?", "કેટલા દિવસમાં જૂતા પરત કરી શકાય?", "જૂતા પરત કરવા માટે સમયગાળો કેટલો છે?"),
    "Hebrew": ("כמה ימים יש לי להחזיר נעליים?", "תוך כמה ימים אפשר להחזיר נעליים?", "מהו הזמן להחזיר נעליים?"),
    "Hindi": ("जूते लौटाने के लिए मेरे पास कितने दिन हैं?", "कितने दिनों में जूते लौटाए जा सकते हैं?", "जूते लौटाने के लिए समय सीमा क्या है?"),
    "Hungarian": ("Hány napom van a cipő visszaküldésére?", "Hány napon belül küldhetem vissza a cipőt?", "Mennyi a cipő visszaküldésére szánt idő?"),
    "Indonesian": ("Berapa hari saya punya untuk mengembalikan sepatu?", "Dalam berapa hari sepatu bisa dikembalikan?", "Apa batas waktu untuk mengembalikan sepatu?"),
    "Italian": ("Quanti giorni ho per restituire le scarpe?", "Entro quanti giorni posso restituire le scarpe?", "Qual è il termine per restituire le scarpe?"),
    "Japanese": ("靴を返品できるのは何日以内ですか?", "靴の返品期限は何日ですか?", "何日まで靴を返品できますか?"),
    "Kannada": ("ಬೂಟುಗಳನ್ನು ಹಿಂತಿರುಗಿಸಲು ನನಗೆ ಎಷ್ಟು ದಿನಗಳಿವೆ?", "ಎಷ್ಟು ದಿನಗಳಲ್ಲಿ ಬೂಟುಗಳನ್ನು ಹಿಂತಿರುಗಿಸಬಹುದು?", "ಬೂಟುಗಳನ್ನು ಹಿಂತಿರುಗಿಸಲು ಅವಧಿ ಎಷ್ಟು?"),
    "Khmer": ("តើខ្ញុំមានប៉ុន្មានថ្ងៃដើម្បីប្រគល់ស្បែកជើងវិញ?", "តើអាចប្រគល់ស្បែកជើងវិញក្នុងរយៈពេលប៉ុន្មានថ្ងៃ?", "តើរយៈពេលប្រគល់ស្បែកជើងវិញប៉ុន្មានថ្ងៃ?"),
    "Korean": ("신발을 반품할 수 있는 기간은 며칠입니까?", "며칠 안에 신발을 반품할 수 있습니까?", "신발을 반품할 수 있는 기한이 얼마나 됩니까?"),
    "Lithuanian": ("Kiek dienų turiu batams grąžinti?", "Per kiek dienų galiu grąžinti batus?", "Koks terminas batams grąžinti?"),
    "Norwegian": ("Hvor mange dager har jeg på å returnere sko?", "Innen hvor mange dager kan jeg returnere sko?", "Hva er fristen for å returnere sko?"),
    "Persian": ("برای پس دادن کفش چند روز وقت دارم؟", "تا چند روز می‌توانم کفش را پس بدهم؟", "مهلت پس دادن کفش چند روز است؟"),
    "Polish": ("Ile dni mam na zwrot butów?", "W ciągu ilu dni mogę zwrócić buty?", "Jaki jest termin na zwrot butów?"),
    "Portuguese": ("Quantos dias tenho para devolver sapatos?", "Em quantos dias posso devolver sapatos?", "Qual é o prazo para devolver sapatos?"),
    "Russian": ("Сколько дней у меня есть на возврат обуви?", "В течение скольких дней возможен возврат обуви?", "Какой срок есть на возврат обуви?"),
    "Spanish": ("¿Cuántos días tengo para devolver los zapatos?", "¿En cuántos días puedo devolver los zapatos?", "¿Cuál es el plazo para devolver los zapatos?"),
    "Swahili": ("Nina siku ngapi za kurudisha viatu?", "Ninaweza kurudisha viatu ndani ya siku ngapi?", "Muda wa kurudisha viatu ni siku ngapi?"),
    "Swedish": ("Hur många dagar har jag på mig att lämna tillbaka skor?", "Inom hur många dagar kan jag lämna tillbaka skor?", "Vad är tiden för att lämna tillbaka skor?"),
    "Tamil": ("காலணிகளைத் திருப்பித் தர எனக்கு எத்தனை நாட்கள் உள்ளன?", "எத்தனை நாட்களுக்குள் காலணிகளைத் திருப்பித் தரலாம்?", "காலணிகளைத் திருப்பித் தர கால அவகாசம் எவ்வளவு?"),
    "Telugu": ("బూట్లు తిరిగి ఇవ్వడానికి నాకు ఎన్ని రోజులు ఉన్నాయి?", "ఎన్ని రోజుల్లో బూట్లు తిరిగి ఇవ్వవచ్చు?", "బూట్లు తిరిగి ఇవ్వడానికి గడువు ఎంత?"),
    "Thai": ("ฉันมีเวลากี่วันในการคืนรองเท้า", "คืนรองเท้าได้ภายในกี่วัน", "ระยะเวลาคืนรองเท้านานเท่าไร"),
    "Turkish": ("Ayakkabıları iade etmek için kaç günüm var?", "Ayakkabıları kaç gün içinde iade edebilirim?", "Ayakkabıları iade etmek için süre ne kadar?"),
    "Vietnamese": ("Tôi có bao nhiêu ngày để trả lại giày?", "Trong bao nhiêu ngày tôi có thể trả lại giày?", "Thời hạn để trả lại giày là bao lâu?"),
}  # fmt: skip
MARKS = "?？؟¿;"
ANSWER = "Thirty days."
INVALID = (
    "I cannot write a question about shoes.",
    "There is no question to write about the return of shoes.",
    "Here are three questions about returning shoes",
    "The answer gives a return period",
    "Thirty days.",
    "Thirty days",
    "Question 1",
    "No question.",
    "N/A",
    "...",
    "?",
    "30",
    '{"question": ""}',
    "Please provide the answer.",
    "Désolé, je ne peux pas écrire cette question.",
    "Ich kann keine Frage schreiben.",
    "No puedo escribir una pregunta.",
    "抱歉,我无法生成问题。",
    "질문을 작성할 수 없습니다.",
    "Я не могу составить вопрос.",
    "Shoes can be returned within thirty days.",
)


def test_questions_of_forty_languages_are_usable_with_and_without_marks() -> None:
    """A question without a mark repeats the content of the question asked, or asks with a word of its language."""
    rejected = [
        (language, text)
        for language, questions in QUESTIONS.items()
        for question in questions
        for text in (question, question.strip(MARKS + " "))
        if not GeneratedQuestion(text, answer=ANSWER, asked=questions[0]).is_usable
    ]

    assert len(QUESTIONS) >= 40
    assert len(rejected) <= 0.05 * 6 * len(QUESTIONS), rejected


@each("text", INVALID)
def test_replies_that_are_no_questions_are_unusable(text: str) -> None:
    """Refusals, introductions, the answer and statements are no questions, even if they name the subject."""
    assert not GeneratedQuestion(text, answer=ANSWER, asked=QUESTIONS["English"][0]).is_usable
