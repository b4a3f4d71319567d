"""Languages, declared and guessed."""

from __future__ import annotations

import time

import pytest

from holdfast.parse.text import canonical_tag, guess_language
from tests import patience


@pytest.mark.parametrize(
    ("declared", "tag"),
    [
        ("en", "en"),
        ("EN-us", "en-US"),
        (" en_GB ", "en-GB"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("PT-br", "pt-BR"),
        ("es-419", "es-419"),
        ("sl-rozaj-biske", "sl-rozaj-biske"),
        ("de-x-PRIVATE", "de-x-private"),
        ("en-u-CA-gregory", "en-u-ca-gregory"),
        ("", None),
        (None, None),
        ("und", None),
        ("utf-8", None),
        ("english", None),
        ("e", None),
        ("en-", None),
        ("en, fr", None),
        ("<script>", None),
        ("en-" + "a" * 8 + "-" + "b" * 8 + "-" + "c" * 8 + "-" + "d" * 8, None),
        ("ёж", None),
    ],
)
def test_a_declared_language_becomes_canonical_or_nothing(declared: str | None, tag: str | None) -> None:
    assert canonical_tag(declared) == tag


_TEXTS = {
    "en": "The library is open to the public and has more books than it can show. It was built by the "
    "people of the town.",
    "fr": "La bibliothèque est ouverte au public et elle compte plus de livres que nous ne pouvons en "
    "montrer dans la salle.",
    "de": "Die Bibliothek ist für alle offen und hat mehr Bücher, als sie zeigen kann. Sie wurde von den "
    "Bürgern der Stadt gebaut.",
    "es": "La biblioteca está abierta al público y tiene más libros de los que se pueden mostrar en una "
    "sala como esta.",
    "pt": "A biblioteca está aberta ao público e tem mais livros do que pode mostrar. Foi construída pelos"
    " moradores da cidade em uma praça.",
    "it": "La biblioteca è aperta al pubblico e ha più libri di quanti ne possa mostrare. È stata "
    "costruita dagli abitanti della città.",
    "nl": "De bibliotheek is open voor het publiek en heeft meer boeken dan er kunnen worden getoond. Het "
    "is door de stad gebouwd.",
    "sv": "Biblioteket är öppet för alla och har fler böcker än det kan visa. Det byggdes av stadens "
    "invånare och det är inte stort.",
    "pl": "Biblioteka jest otwarta dla wszystkich i ma więcej książek, niż może pokazać. To nie jest duży "
    "budynek, ale się podoba.",
    "cs": "Knihovna je otevřena pro všechny a má více knih, než se vejde do sálu. Je to dům, který na "
    "náměstí stojí od roku 1900.",
    "fi": "Kirjasto on avoinna kaikille ja siellä on enemmän kirjoja kuin se voi näyttää. Se ei ole suuri,"
    " mutta se on kaunis.",
    "tr": "Kütüphane herkese açık ve gösterebileceğinden daha çok kitap var. Bu bina bir okul olarak "
    "yapıldı ve çok büyük.",
    "ru": "Библиотека открыта для всех, и в ней больше книг, чем можно показать. Это не большой дом, но он"
    " стоит на площади.",
    "uk": "Бібліотека відкрита для всіх, і в ній більше книг, ніж можна показати. Це не великий будинок, "
    "але він стоїть на площі, що є.",
    "ar": "المكتبة مفتوحة للجميع في المدينة وهي من أكبر المكتبات التي بنيت على هذا النهر مع كل ما فيها من كتب",
    "ja": "図書館は誰でも利用できます。建物は町の人々によって建てられました。",
    "zh": "图书馆向公众开放，藏书多得无法全部展示。它是由城里的居民建造的。",
    "ko": "도서관은 누구에게나 열려 있으며 보여 줄 수 있는 것보다 더 많은 책이 있습니다.",
    "el": "Η βιβλιοθήκη είναι ανοιχτή στο κοινό και έχει περισσότερα βιβλία από όσα μπορεί να δείξει.",
    "he": "הספרייה פתוחה לציבור ויש בה יותר ספרים ממה שאפשר להציג",
    "th": "ห้องสมุดเปิดให้ประชาชนเข้าชมและมีหนังสือมากกว่าที่จะจัดแสดงได้",
    "hi": "पुस्तकालय जनता के लिए खुला है और इसमें दिखाने से अधिक पुस्तकें हैं",
}


@pytest.mark.parametrize("language", sorted(_TEXTS))
def test_running_text_is_recognised(language: str) -> None:
    assert guess_language(_TEXTS[language]) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "OK",
        "12345 67890 — 3.14",
        "Home About Contact Login Search Products Blog News Careers Press Imprint",
        "a a a",
        "Lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor",
        "\x00" * 500,
        "🙂" * 100,
    ],
)
def test_what_is_not_clear_is_not_guessed(text: str) -> None:
    assert guess_language(text) is None


def test_a_guess_costs_the_same_for_a_long_text() -> None:
    text = _TEXTS["fr"] * 20_000

    started = time.process_time()
    assert guess_language(text) == "fr"

    assert time.process_time() - started < patience.allowed(0.05)
