"""The language of a page: what it declares, made canonical, or a small guess. Rather says nothing than guess wildly.

The guess is by script and by the small words of two dozen languages; it costs about 150 us and no model. The index
stage has a real detector.
"""

from __future__ import annotations

import re

_TAG = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,7}")
_MAX_TAG_CHARS = 35  # TR-007
_NO_LANGUAGE = frozenset({"und", "mul", "zxx", "mis"})

_SAMPLE_CHARS = 1000
_MIN_LETTERS = 20
_MIN_HITS = 4
# Of two languages that share small words, the better one must lead by a quarter; below that we do not know.
_MIN_LEAD = 1.25

_WORD = re.compile(r"[^\W\d_]+")

_SMALL_WORDS = {
    "en": "the of and to in is for on with as by this that from at are was be it or an have not you which their "
    "has they were been will can more about",
    "fr": "le la les de des et à en un une pour dans que qui sur est au du par plus ne pas ce avec sont aux son "
    "cette ou vous nous il elle être l'on leur",
    "de": "der die das und in zu mit von auf für ist im den ein nicht eine dem des sich auch als an es werden "
    "aus bei nach einer oder wird sind über wie um",
    "es": "el la los las de y en que un una para por con del se es no al lo como más su sus este esta son o "
    "pero entre cuando muy sin sobre también",
    "pt": "o a os as de e em que um uma para por com do da dos das no na se é não ao mais como seu sua são ou "
    "pelo pela também foi nos nas",
    "it": "il la lo gli le di e in che un una per con del della dei delle si è non al alla come più sono da nel "
    "nella o anche questo questa dal",
    "nl": "de het een en van in is op te dat voor met zijn niet aan er door om ook als bij naar of uit worden "
    "deze wordt maar over kan heeft",
    "sv": "och i att det som en på är av för med till den har de inte om ett från eller vi kan ska var så vid "
    "efter även också",
    "da": "og i at det som en på er af for med til den har de ikke om et fra eller vi kan skal var så ved efter "
    "også blev hvor",
    "no": "og i at det som en på er av for med til den har de ikke om et fra eller vi kan skal var så ved etter "
    "også ble hvor",
    "pl": "i w na z do się nie że jest to o jak przez dla od po są oraz ze jego ale być które który może przy jako tym",
    "cs": "a v na se je že z do o s pro jako to k za po by ve které který jsou jeho od při nebo až ale však tak jsem",
    "ro": "și în de la cu pe a este un o pentru care din nu se mai ca sau sunt al ale prin dar fi au fost "
    "această acest lui",
    "hu": "a az és hogy nem is egy van volt meg de ez ezt csak mint már vagy el után által minden kell még "
    "lehet azt ha",
    "fi": "ja on ei se että oli hän mutta kuin myös joka tai sen ovat mukaan ole kun niin vain jos sekä voi tämä",
    "tr": "ve bir bu da de için ile olarak olan çok daha gibi en o ne kadar sonra var ise ancak ya veya olduğu "
    "tarafından",
    "id": "yang dan di dengan untuk pada dari ini itu dalam adalah tidak akan ke juga oleh atau sebagai telah "
    "dapat lebih karena bisa ada",
    "vi": "và của là có các được cho trong một không những với này người đã từ khi đến để về như tại cũng",
    "ru": "и в не на что с по это как к из у за от он но для так же все его или был было при только если были может",
    "uk": "і в не на що з до та як у за від він але для так же всі його або був було при тільки якщо були може є це й",
    "bg": "и в не на че с по това като от за се са да е но или със при само ако има може той което които бе си",
    "fa": "و در به از که این است را با برای آن یک تا بر می خود های هم نیز شده ها",
    "ur": "کے کی میں ہے اور سے کا کو پر نے یہ کہ ہیں اس تھا بھی ایک گیا ہو",
    "ar": "في من على إلى أن التي هذا مع عن هذه ما لا كان بين الذي قد كل بعد ذلك هو",
}
SMALL_WORDS = tuple(_SMALL_WORDS.values())
"""The words that say little, as lines of them, one a language."""
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _language, _words in _SMALL_WORDS.items():
    for _word in set(_words.split()):
        _LANGUAGES_OF[_word] = (*_LANGUAGES_OF.get(_word, ()), _language)

# Scripts that one language of the web writes, as character classes; the shares that decide stand in _by_script.
# Compiled when they are first used: that takes 6 ms, and most pages say what they are in.
_KANA = r"[\u3040-\u30ff]"
_HAN = r"[\u3400-\u9fff]"
_ONE_LANGUAGE_SCRIPTS = (
    ("ko", r"[\uac00-\ud7af\u1100-\u11ff]"),
    ("el", r"[\u0370-\u03ff\u1f00-\u1fff]"),
    ("he", r"[\u0590-\u05ff]"),
    ("th", r"[\u0e00-\u0e7f]"),
    ("hi", r"[\u0900-\u097f]"),
    ("bn", r"[\u0980-\u09ff]"),
    ("ta", r"[\u0b80-\u0bff]"),
    ("ka", r"[\u10a0-\u10ff]"),
    ("hy", r"[\u0530-\u058f]"),
)


def canonical_tag(declared: str | None) -> str | None:
    """Return a declared language as a BCP-47 tag with its usual capitals; None if it is none, or names no language."""
    if not declared:
        return None
    text = declared.strip().replace("_", "-")
    if len(text) > _MAX_TAG_CHARS or _TAG.fullmatch(text) is None:
        return None
    first, *rest = text.split("-")
    if first.lower() in _NO_LANGUAGE:
        return None
    parts, extension = [first.lower()], False
    for part in rest:
        extension = extension or len(part) == 1
        if extension:
            parts.append(part.lower())
        elif len(part) == 4 and part.isalpha():
            parts.append(part.title())
        elif len(part) == 2 and part.isalpha():
            parts.append(part.upper())
        else:
            parts.append(part.lower())
    return "-".join(parts)


def guess_language(text: str) -> str | None:
    """Return the language that a text is most likely in, from its first 1,000 characters; None if that is not clear."""
    sample = text[:_SAMPLE_CHARS]
    words = _WORD.findall(sample.lower())
    letters = sum(map(len, words))
    if letters < _MIN_LETTERS:
        return None
    if not sample.isascii() and (found := _by_script(sample, letters)):
        return found
    hits: dict[str, int] = {}
    for word in words:
        for language in _LANGUAGES_OF.get(word, ()):
            hits[language] = hits.get(language, 0) + 1
    if not hits:
        return None
    ranked = sorted(hits, key=hits.__getitem__, reverse=True)
    best = hits[ranked[0]]
    second = hits[ranked[1]] if len(ranked) > 1 else 0
    # Running text has a small word in every four to eight; a list of names that shares a few of them does not.
    if best < _MIN_HITS or best * 12 < len(words) or best < second * _MIN_LEAD:
        return None
    return ranked[0]


def _by_script(sample: str, letters: int) -> str | None:
    if len(re.findall(_KANA, sample)) * 10 > letters:
        return "ja"
    if len(re.findall(_HAN, sample)) * 3 > letters:
        return "zh"
    for language, script in _ONE_LANGUAGE_SCRIPTS:
        if len(re.findall(script, sample)) * 2 > letters:
            return language
    return None
