"""Pages of our own for `bench.noise`: answers that show no page, in many styles, and content that looks like them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_WORDS = [
    *("harbour", "tide", "lantern", "meadow", "copper", "ladder", "window", "barley", "anchor", "quarry", "willow"),
    *("saddle", "pebble", "orchard", "kettle", "marble", "ferry", "timber", "chapel", "hollow", "bracken", "cinder"),
    *("thimble", "gravel", "sparrow", "mallet", "juniper", "cobble", "furrow", "pewter", "lattice", "osprey"),
]
_MENU = "".join(f"<li><a href='/chapter-{n}.html'>{word.title()} and more</a></li>" for n, word in enumerate(_WORDS))
_SHARED = f"<nav><ul>{_MENU}</ul></nav>"
_FOOT = "<footer><p>All rights reserved. Contact, imprint, privacy, terms of use.</p></footer>"


class MadePage(NamedTuple):
    """One answer of the generated site."""

    path: str
    body: str
    style: str
    kind: str | None
    """What it is instead of a page; None for content."""
    status: int = 200
    location: str | None = None


def html(title: str, main: str, *, template: bool = True, head: str = "") -> str:
    """Return a page, in the frame that all pages of the site share or bare."""
    around = (_SHARED, _FOOT) if template else ("", "")
    return (
        f"<!DOCTYPE html><html><head><meta charset=utf-8><title>{title}</title>{head}</head>"
        f"<body>{around[0]}<main>{main}</main>{around[1]}</body></html>"
    )


def _names(count: int, *, salt: int = 0) -> list[str]:
    size = len(_WORDS)
    return [f"{_WORDS[(n * 7 + salt) % size]}-{_WORDS[(n * 11 + salt + n // size) % size]}-{n}" for n in range(count)]


_SAYS_404 = {
    "en": ("Page not found", "Sorry, the page you are looking for could not be found."),
    "fr": ("Page introuvable", "La page que vous recherchez n'existe pas ou a été déplacée."),
    "de": ("Seite nicht gefunden", "Die angeforderte Seite konnte nicht gefunden werden."),
    "es": ("Página no encontrada", "La página que buscas no existe o ha cambiado de lugar."),
    "it": ("Pagina non trovata", "La pagina che stai cercando non è disponibile."),
    "nl": ("Pagina niet gevonden", "De pagina die u zoekt bestaat niet meer."),
    "pt": ("Página não encontrada", "A página que você procura não existe."),
    "pl": ("Nie znaleziono strony", "Strona, której szukasz, nie istnieje."),
    "sv": ("Sidan hittades inte", "Sidan du letar efter finns inte längre."),
    "ja": ("ページが見つかりません", "お探しのページは移動または削除された可能性があります。"),
    "zh": ("页面未找到", "您访问的页面不存在或已被删除。"),
    "ru": ("Страница не найдена", "Страница, которую вы ищете, была удалена или не существует."),
    "ar": ("الصفحة غير موجودة", "الصفحة التي تبحث عنها غير متاحة."),
}


HOME = "the home page"
"""The body of a page that is answered with what the home page has."""
# In a language of which no words are known.
_FINNISH = html(
    "Sivua ei ole - Esimerkki",
    "<h1>Sivua ei ole</h1><p>Hakemaasi osoitetta ei ole palvelimella, tarkista kirjoitusasu.</p>",
)


def soft_404s(count: int) -> Iterator[MadePage]:
    """Yield pages that are not there, each style as sites have it."""
    kind = "soft_404"
    # First: the text of the site's own error page is known once it was met.
    yield MadePage("/404.html", html("Page not found", "<h1>Page not found</h1>"), "error page", None, 404)
    for name in ("aa-first", "bb-second"):
        yield MadePage(f"/fi-real/{name}", _FINNISH, "error page", None, 404)
    for language, (title, text) in _SAYS_404.items():
        for name in _names(max(5, count // 3), salt=len(language) + ord(language[0])):
            main = f"<h1>{title}</h1><p>{text}</p>"
            yield MadePage(f"/{language}/{name}", html(f"{title} | Example", main), f"soft 404, {language}", kind)
    for n, name in enumerate(_names(count, salt=3)):
        path = f"/asked/{name}"
        echo = f"<h1>Not Found</h1><p>The requested URL {path} was not found on this server.</p>"
        yield MadePage(path, html("404 Not Found", echo, template=False), "soft 404, repeats its address", kind)
        others = [_WORDS[(n * 5 + i * 3) % len(_WORDS)] for i in range(12)]
        offers = "".join(f"<li><a href='/o{i}'>{word} guide</a></li>" for i, word in enumerate(others))
        asked = name.replace("-", " ")
        main = f"<h1>Oops!</h1><p>We couldn't find “{asked}”. Did you mean one of these?</p><ul>{offers}</ul>"
        yield MadePage(f"/search/{name}", html("Nothing found - Example", main), "soft 404, suggestions", kind)
        yield MadePage(f"/moved/{name}", "", "soft 404, redirect to home", kind, 302, "/")
        yield MadePage(f"/away/{name}", "", "soft 404, redirect to an error page", kind, 302, "/404.html")
        yield MadePage(f"/shell/{name}", HOME, "soft 404, text of the home page", kind)
        yield MadePage(f"/fi/{name}", _FINNISH, "soft 404, as the site's own 404", kind)


def block_pages(count: int) -> Iterator[MadePage]:
    """Yield what firewalls, captchas and limits of requests answer."""
    kind = "block_page"
    challenge = "<script src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1'></script>"
    for n, name in enumerate(_names(count, salt=9)):
        main = (
            f"<h1>127.0.0.1</h1><p>Verifying you are human. This may take a few seconds.</p><p>Ray ID: 8f{n:06x}a1</p>"
        )
        page = html("Just a moment...", main, template=False, head=challenge)
        yield MadePage(f"/guarded/{name}", page, "block page, challenge", kind)
        main = (
            f"<h1>Access Denied</h1><p>You don't have permission to access this page.</p><p>Reference #18.{n:08x}.9</p>"
        )
        yield MadePage(f"/edge/{name}", html("Access Denied", main, template=False), "block page, denied", kind)
        main = "<h1>Too many requests</h1><p>You have sent too many requests. Please try again later.</p>"
        yield MadePage(f"/limit/{name}", html("Too many requests | Example", main), "block page, limit", kind)
        main = "<h1>Are you a robot?</h1><div class=g-recaptcha></div><p>Please complete the captcha to go on.</p>"
        yield MadePage(f"/robot/{name}", html("Security check", main), "block page, captcha", kind)
        main = "<h1>Zugriff verweigert</h1><p>Ungewöhnlicher Datenverkehr aus Ihrem Netz.</p>"
        yield MadePage(f"/de-edge/{name}", html("Zugriff verweigert", main), "block page, de", kind)


def walls(count: int) -> Iterator[MadePage]:
    """Yield consent walls and login walls."""
    form = "<form method=post><input name=user><input type=password name=pw><button>Log in</button></form>"
    for name in _names(count, salt=17):
        main = (
            "<h1>We value your privacy</h1><p>We and our partners store and access information on a device.</p>"
            "<p><button>Accept all</button> <button>Reject all</button> <button>Manage choices</button></p>"
        )
        yield MadePage(f"/news/{name}", html("Example News", main, template=False), "consent wall", "consent_wall")
        main = "<h1>Bevor Sie fortfahren</h1><p>Wir und unsere Partner verwenden Cookies.</p><p>Alle akzeptieren</p>"
        yield MadePage(f"/zeitung/{name}", html("Ihre Privatsphäre", main), "consent wall, de", "consent_wall")
        main = f"<h1>Log in</h1><p>Please log in to continue.</p>{form}"
        yield MadePage(f"/members/{name}", html("Log in | Example", main), "login wall", "login_wall")
        yield MadePage(f"/club/{name}", "", "login wall, redirect", "login_wall", 302, f"/signin?next=/club/{name}")
        main = f"<h1>Sign in</h1><p>Sign in to your account.</p>{form}"
        yield MadePage(f"/signin?next=/club/{name}", html("Sign in", main), "login wall, target", "login_wall")
        main = f"<h1>Connexion</h1><p>Vous devez vous connecter pour lire cet article.</p>{form}"
        yield MadePage(f"/abonnes/{name}", html("Connexion - Exemple", main), "login wall, fr", "login_wall")


def parked(host: str) -> Iterator[MadePage]:
    """Yield the only page of a domain that is parked."""
    main = f"<h1>{host} is for sale!</h1><p>Buy this domain. The owner offers it at a fair price.</p>"
    yield MadePage("/", html(f"{host} - domain for sale", main, template=False), "parked, own name", "parked")


def parked_by_service(host: str) -> Iterator[MadePage]:
    """Yield the only page of a domain that a service parks."""
    script = "<script src='//sedoparking.com/frmpark/abc/js.js'></script>"
    main = "<p>Related searches</p><ul><li>Loans</li><li>Insurance</li></ul><p>This domain may be for sale.</p>"
    yield MadePage("/", html("Welcome", main, template=False, head=script), "parked, service", "parked")


def content(count: int) -> Iterator[MadePage]:
    """Yield content that looks like noise: short, alike, about it, or in the same frame."""
    for n in range(12):
        main = (
            "<h1>404 Not Found</h1><p>The server sends this status if it cannot find the requested resource. Links "
            "that lead there are often called dead. It does not say whether the absence is for a time or for good; a "
            "server that knows sends 410 instead. A proxy may keep the answer.</p>"
        )
        yield MadePage(f"/docs/v{n}/status/404.html", html("404 Not Found - HTTP", main), "manual in versions", None)
        main = "<h1>Access denied</h1><p>How to give a role the right to read a table, step by step, with examples.</p>"
        yield MadePage(f"/docs/v{n}/howto/denied.html", html("Access denied", main), "manual in versions", None)
    entries = {
        "captcha": "A small test that tells people from programs.",
        "login": "The act of telling a system who you are.",
        "access denied": "What a system says that does not let a user in.",
        "cookie consent": "The agreement of a reader to cookies.",
        "parked domain": "A domain that shows nothing but advertisements.",
        "page not found": "What a server says that has no such page.",
        "too many requests": "What a server says that is asked too often.",
        "log in": "To tell a system who you are. See login.",
    }
    for word in _WORDS[:24]:
        entries[word] = f"A {word} is kept by the door, as it was in the old days."
    for term, text in entries.items():
        main = f"<h1>{term.title()}</h1><p>{text}</p>"
        yield MadePage(
            f"/glossary/{term.replace(' ', '-')}", html(f"{term.title()} - Glossary", main), "glossary", None
        )
    for n in range(1, 11):
        items = "".join(f"<li>{_WORDS[(n * 13 + i * 5) % len(_WORDS)]} and the missing page</li>" for i in range(8))
        main = f"<h1>Posts tagged “page not found”</h1><ul>{items}</ul><p>Page {n} of 10</p>"
        yield MadePage(f"/tag/page-not-found/{n}", html("Posts tagged page not found", main), "list of articles", None)
        items = "".join(f"<li>{_WORDS[(n * 17 + i * 3) % len(_WORDS)]} for members</li>" for i in range(8))
        main = f"<h1>Login</h1><ul>{items}</ul>"
        yield MadePage(f"/topic/login?page={n}", html("Login - Topics", main), "list of articles", None)
    form = "<form method=post><input name=user><input type=password name=pw></form>"
    main = f"<h1>Log in</h1><p>Welcome back. Forgot your password?</p>{form}"
    yield MadePage("/account/login", html("Log in", main), "the site's login", None)
    main = "<h1>Cookie policy</h1><p>We use cookies. Accept all, or choose.</p>" + "<p>What each one is for. </p>" * 40
    yield MadePage("/cookies", html("Cookie policy", main), "policy", None)
    for name in _names(count, salt=23):
        text = f"<h1>{name.replace('-', ' ').title()}</h1><p>Open daily. Closed on holidays. Ask for {name} inside.</p>"
        yield MadePage(f"/short/{name}", html(f"{name} - Example", text), "short page in a long frame", None)
    for name in _names(6, salt=29):
        main = f"<p>The {name} sold for more than its owner hoped, and the buyer is glad.</p>"
        yield MadePage(f"/market/{name}", html(f"{name} is for sale", main), "article about a sale", None)


_JSD = "<script>a.src='/cdn-cgi/challenge-platform/scripts/jsd/main.js';</script>"
"""What Cloudflare adds to ordinary pages."""


def banner_site() -> Iterator[MadePage]:
    """Yield two pages and a true 404 of a site with one title, under one heading, and an error page of its own."""
    head = "<h1>Town of Exampleville</h1><p>Official site of the municipality, its council and its services</p>"
    texts = {
        "p1.html": "The council meets each month. " + "Minutes are kept in the hall. " * 15,
        "p2.html": "Our parks. " + "There are trees and lawns and a pond. " * 15,
    }
    missing = html("Town of Exampleville", f"{head}<p>Sorry, the file was not found.</p>", template=False)
    yield MadePage("/town/gone.html", missing, "error page", None, 404)
    for name, text in texts.items():
        page = html("Town of Exampleville", f"{head}<p>{text}</p>", template=False)
        yield MadePage(f"/town/{name}", page, "under one banner", None)


def entries() -> Iterator[MadePage]:
    """Yield entries of lists that are alike but for their subject, each with words that errors and walls have, too."""
    for n, name in enumerate(("brass-lamp", "oak-chair", "blue-vase", "iron-pan", "silk-scarf")):
        text = (
            f"An item from our past collections, no longer available: {name.replace('-', ' ')}. Made by hand, sold "
            f"until 2009, with a note by curator number {n}: " + f"the {name} was the first of its kind. " * 6
        )
        page = html("Shop archive", f"<h1>Shop archive</h1><p>{text}</p>", template=False)
        yield MadePage(f"/archive/{name}", page, "entry of a catalogue", None)
    for word in ("ubuntu", "saudade", "hygge", "schadenfreude"):
        text = (
            f"Hasło w słowniku, którego polski odpowiednik nie istnieje: {word}. Znaczenie podane niżej, z przykładem."
        )
        page = html("Słownik", f"<h1>Słownik</h1><p>{text}</p>", template=False)
        yield MadePage(f"/haslo/{word}", page, "entry of a dictionary", None)
    form = "<form><input type=password></form>"
    for topic, name in (("a1", "Anna"), ("b2", "Bert"), ("c3", "Carl"), ("d4", "Dora")):
        text = (
            "<p>You must be logged in to reply to this topic in the forum of the club.</p>"
            f"<p>{name} wrote about the boat and its mast and the sails in the year of the great storm.</p>"
        )
        page = html("Forum", f"<h1>Forum</h1>{text}{form}", template=False)
        yield MadePage(f"/topic/{topic}", page, "topic of a forum", None)


def traits(host: str) -> Iterator[MadePage]:
    """Yield pages of which a single trait is that of noise: their own host, path or markup."""

    def page(path: str, title: str, main: str, head: str = "") -> MadePage:
        return MadePage(path, html(title, main, template=False, head=head), "a trait of noise", None)

    main = "<h1>Sunset</h1><p>Oil on canvas, 2019. This painting is available for purchase.</p>"
    yield page("/works/sunset", "Sunset, oil on canvas", f"{main}<p>Write to studio@{host} for the price.</p>")
    main = "<h1>Villa is for sale</h1><p>Three bedrooms, a garden, near the lake.</p>"
    yield page("/listing/12", f"Villa is for sale | {host}", main)
    main = f"<h1>Names</h1><p>This domain is for sale: names.example. Write to sale@{host}, or see {host}.</p>"
    yield page("/names", "Names that we sell", main)
    main = "<h1>Limits</h1><p>The rate limit of the API is 60 calls a minute for each key.</p>"
    yield page("/api/limits", "Limits - Example API", main, head=_JSD)
    main = "<h1>Via Roma riaperta</h1><p>Il camion che era uscito di strada è stato bloccato dai vigili.</p>"
    yield page("/cronaca/1234", "Via Roma riaperta al traffico", main, head=_JSD)
    main = "<h1>Access denied</h1><p>What a system says that does not let a user in, and what to do then.</p>"
    yield page("/help/denied", "Access denied - Help", main, head=_JSD)
    main = "<h1>Reports</h1><p>GET /v1/reports returns the requested resource as JSON.</p>"
    yield page("/v1/reports", "Reports", main)
    main = "<h1>404 Not Found</h1><p>Try it: GET /status/404-not-found answers so.</p>"
    yield page("/status/404-not-found", "404 Not Found - Status codes", main)
