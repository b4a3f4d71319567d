"""Translations (English and French) for the pages that the server renders: sign-in, one-time links and account.

The English sentence is the key. `speak` sets the language of a request, `t` translates a sentence into it.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, Literal, NamedTuple

from fastapi import Request

Language = Literal["en", "fr"]
COOKIE: Final = "language"
"""The browser application writes this cookie too, so that one choice applies to all pages."""


class Spoken(NamedTuple):
    """The language of a request, and the URL that switches to the other one."""

    language: Language = "en"
    other: str = "?lang=fr"
    has_pages: bool = False
    """Whether the browser application is served, so that the header links to its pages."""
    is_chosen: bool = False
    """Whether this request chose the language, so that a cookie must be set."""


_DEFAULT: Final = Spoken()
_SPOKEN: ContextVar[Spoken] = ContextVar("spoken", default=_DEFAULT)


def speak(request: Request) -> None:
    """Set the language: from `lang` in the query string, else the cookie, else Accept-Language."""
    asked = (request.query_params.get("lang"), request.cookies.get(COOKIE), _preferred(request))
    language: Language = "fr" if next((one for one in asked if one in ("fr", "en")), "en") == "fr" else "en"
    other = "en" if language == "fr" else "fr"
    # The page shows a sent form again at the same path; its fields are not in the address.
    query = request.url.remove_query_params("lang").include_query_params(lang=other).query
    is_chosen = request.query_params.get("lang") == language
    _SPOKEN.set(Spoken(language, f"{request.url.path}?{query}", bool(request.app.state.has_pages), is_chosen))


def _preferred(request: Request) -> str | None:
    header = request.headers.get("accept-language", "")[:200].lower()
    named = (part.split(";")[0].strip().split("-")[0] for part in header.split(","))
    return next((one for one in named if one in ("en", "fr")), None)


def spoken() -> Spoken:
    return _SPOKEN.get()


def t(sentence: str, **values: object) -> str:
    """Translate a sentence into the request's language and fill its `{holes}`; unknown sentences stay English."""
    said = _FRENCH.get(sentence, sentence) if _SPOKEN.get().language == "fr" else sentence
    return said.format(**values) if values else said


_FRENCH: Final = {
    "Search": "Recherche",
    "Changes": "Changements",
    "Sources": "Sources",
    "Editions": "Éditions",
    "Menu": "Menu",
    "Appearance": "Apparence",
    "System": "Système",
    "Light": "Clair",
    "Dark": "Sombre",
    "High contrast": "Contraste élevé",
    "Sign in": "Se connecter",
    "Signed in": "Connecté",
    "Go on": "Continuer",
    "Sign in with {name}": "Se connecter avec {name}",
    "or": "ou",
    "Name": "Nom",
    "Password": "Mot de passe",
    "No account, or no password any more? An administrator can send you a link.": (
        "Pas de compte, ou mot de passe perdu ? Un administrateur peut vous envoyer un lien."
    ),
    "One-time link": "Lien à usage unique",
    "Code of your link": "Code de votre lien",
    "The characters behind <code>token=</code>.": "Les caractères après <code>token=</code>.",
    "Continue": "Continuer",
    "Link": "Lien",
    "This link does not work": "Ce lien ne fonctionne pas",
    "Create your administrator account": "Créez votre compte d’administrateur",
    "Choose a password": "Choisissez un mot de passe",
    "For {name}.": "Pour {name}.",
    "Save and sign in": "Enregistrer et se connecter",
    "New password": "Nouveau mot de passe",
    "At least {count} characters; a few random words are easy to remember.": (
        "Au moins {count} caractères ; quelques mots choisis au hasard se retiennent bien."
    ),
    "Repeat password": "Répétez le mot de passe",
    "Account": "Compte",
    "Sign out": "Se déconnecter",
    "Your role: {role}.": "Votre rôle : {role}.",
    "To the archive": "Vers l’archive",
    "unknown": "inconnu",
    "this browser": "ce navigateur",
    "End": "Terminer",
    "Browser": "Navigateur",
    "Address": "Adresse",
    "Since": "Depuis",
    "Last seen": "Dernière activité",
    "End all others": "Terminer toutes les autres",
    "{caption}, table": "{caption}, tableau",
    "Action": "Action",
    "never": "jamais",
    "Revoke": "Révoquer",
    "Tokens": "Jetons",
    "Begins with": "Commence par",
    "Permissions": "Droits",
    "Until": "Jusqu’au",
    "Last used": "Dernière utilisation",
    "A token lets a program act for you. You have none.": (
        "Un jeton permet à un programme d’agir pour vous. Vous n’en avez aucun."
    ),
    "Name of a new token": "Nom d’un nouveau jeton",
    "Days": "Jours",
    "Create token": "Créer un jeton",
    "You sign in at {issuer}.": "Vous vous connectez chez {issuer}.",
    "Current password": "Mot de passe actuel",
    "All other browsers are signed out.": "Tous les autres navigateurs seront déconnectés.",
    "Change password": "Changer le mot de passe",
    "Your new token": "Votre nouveau jeton",
    "Copy it now: it is not shown again.": "Copiez-le maintenant : il ne sera plus affiché.",
    "A token needs a name, 1 to 366 days, and something that it may do.": (
        "Un jeton a besoin d’un nom, de 1 à 366 jours et d’au moins un droit."
    ),
    "Your password is changed. Other sessions ended: {count}.": (
        "Votre mot de passe est changé. Autres sessions terminées : {count}."
    ),
    "what you may read": "lire ce que vous pouvez lire",
    "change your own account": "modifier votre propre compte",
    "explain why an address is or is not in the archive": (
        "expliquer pourquoi une adresse est ou n’est pas dans l’archive"
    ),
    "crawls and figures": "collectes et chiffres",
    "run crawls, care for the archive": "lancer des collectes, entretenir l’archive",
    "everything": "tout",
    "anonymous": "anonyme",
    "member": "membre",
    "observer": "observateur",
    "operator": "opérateur",
    "administrator": "administrateur",
    "The name or the password is wrong; try again.": "Le nom ou le mot de passe est incorrect ; réessayez.",
    "The two passwords differ; type the same twice.": (
        "Les deux mots de passe diffèrent ; saisissez deux fois le même."
    ),
    "This link was used already, was replaced, or is too old; ask for a new one.": (
        "Ce lien a déjà été utilisé, a été remplacé ou est trop ancien ; demandez-en un nouveau."
    ),
}
