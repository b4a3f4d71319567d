"""Sentences in the legacy encodings of the web, for pages that declare no charset."""

from __future__ import annotations

from typing import Final

_CYRILLIC: Final = "Таблица приливов порта выходит каждый год. Рыбаки и паромы находят в ней время и высоту воды."
_JAPANESE: Final = "港の潮汐表は毎年発行されます。漁師と渡し船は、この表で時刻と潮の高さを調べることができます。"
LEGACY_TEXT: Final = {
    "shift_jis": ("ja", _JAPANESE),
    "euc-jp": ("ja", _JAPANESE),
    "gb18030": ("zh-CN", "港口的潮汐表每年出版。渔民和渡船在这里可以看到时间和水位，也可以用来计划他们的行程。"),
    "big5": ("zh-TW", "港口的潮汐表每年出版。漁民和渡船在這裡可以看到時間和水位，也可以用來計劃他們的行程。"),
    "euc-kr": ("ko", "항구의 조석표는 해마다 발행됩니다. 어부는 이 표에서 시각과 물의 높이를 찾을 수 있습니다."),
    "windows-1251": ("ru", _CYRILLIC),
    "koi8-r": ("ru", _CYRILLIC),
    "ibm866": ("ru", _CYRILLIC),
    "windows-1255": ("he", "לוח הגאות של הנמל מתפרסם בכל שנה. הדייגים והמעבורות מוצאים בו את השעה ואת גובה המים."),
    "windows-1256": ("ar", "ينشر جدول المد والجزر للميناء كل عام. يجد الصيادون فيه الوقت وارتفاع المياه."),
    "windows-874": ("th", "ตารางน้ำขึ้นน้ำลงของท่าเรือเผยแพร่ทุกปี ชาวประมงและเรือข้ามฟากค้นหาเวลาและความสูงของน้ำได้จากตารางนี้"),
    "windows-1250": ("cs", "Tabulka přílivů přístavu vychází každý rok. Rybáři v ní najdou čas a výšku vody."),
    "windows-1254": ("tr", "Limanın gelgit çizelgesi her yıl yayımlanır. Balıkçılar suyun yüksekliğini bulur."),
    "windows-1252": ("fr", "La table des marées du port paraît chaque année. Les pêcheurs y trouvent l’heure."),
}  # fmt: skip
"""By encoding: the language, and a text in it."""
_CODECS: Final = {"windows-874": "cp874"}


def undeclared_page(encoding: str, *, with_language: bool) -> bytes:
    """Return a page in this encoding that names it nowhere."""
    language, text = LEGACY_TEXT[encoding]
    attribute = f' lang="{language}"' if with_language else ""
    page = f"<!doctype html><html{attribute}><title>{text[:12]}</title><body><p>{text}</p></body></html>"
    return page.encode(_CODECS.get(encoding, encoding))
