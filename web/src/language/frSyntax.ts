/** The query language in French, by the name of an operator or the example that shows a word; what the server has and this lacks is shown in English. */
export const frSyntax: Readonly<Record<string, string>> = {
  "flu vaccine": "Tous les mots, où qu’ils soient dans le texte et sous toutes leurs formes.",
  '"flu vaccine"': "Les mots côte à côte.",
  "example.org/a": "Une adresse, quelle que soit la façon de l’écrire.",
  "title:flu (url:/en/ OR snippet:clinic) -archived": "title:, snippet: et url: cherchent des lettres dans un champ. AND, OR, NOT, les parenthèses et `-mot` relient des mots.",
  site: "Sur cet hôte et tous ceux qui en dépendent, quel que soit le port sauf s’il est donné ; `www.` est un hôte à part. Un nom comme `gov.uk` ou `ca` vaut pour tout ce qui en dépend. Avec un chemin, seulement ce qui se trouve dans ce répertoire, par segments entiers, sans égard aux majuscules.",
  before: "Capturé avant le début de cette année, de ce mois ou de ce jour (UTC), qui n’est pas compris.",
  after: "Capturé depuis le début de cette année, de ce mois ou de ce jour (UTC), qui est compris : `after:2023 before:2024` est l’année 2023.",
  type: "Une sorte de page : html, other, pdf, text ; ou ce à quoi elle sert, quand on a pu le lire : article, listing, home, product, reference, form, media.",
  lang: "Dans cette langue, d’après le début de son code ; `und` quand elle n’est pas connue.",
  author: "D’auteurs dont le nom contient tous ces mots, sans égard aux accents ni aux majuscules.",
  published: "Publié cette année, ce mois ou ce jour (UTC), d’après ce que la page dit d’elle-même ; celles qui n’en disent rien n’en sont pas.",
  intitle: "Avec ce mot dans le titre, sous toutes ses formes ; entre guillemets, des mots côte à côte. (`title:` cherche des lettres, ceci des mots.)",
  inurl: "Avec ce texte quelque part dans l’adresse, sans égard aux majuscules.",
  near: "Avec ces mots dans n’importe quel ordre et au plus N autres entre deux mots nommés l’un après l’autre ; N va de 1 à 100, et vaut 10 s’il manque. `\"water school\"~5` dit la même chose. S’il y a trois mots ou plus, chacun est près du suivant, peut-être à des endroits différents ; deux formes d’un même mot (`run running`) ne font pas deux mots. Dans une écriture qui ne sépare pas les mots, les lettres comptent.",
  changed: "Si le contenu diffère de celui de la capture précédente, de la même adresse et de la même source ; une première capture n’en a pas, et n’est ni l’un ni l’autre. Avec une année, un mois ou un jour : modifié, et capturé alors.",
  like: "Semblable à cette capture par ses mots les plus parlants ; d’autres pages que la sienne, les plus semblables d’abord. À la place de mots ; d’autres opérateurs peuvent l’accompagner.",
};
