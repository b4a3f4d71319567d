import type { t } from "../control/waits";

export const fr: Record<keyof typeof t.en, string> = {
  "title.contact": "En attente de votre contact.",
  "title.worker": "En attente : aucun processus de collecte n’est démarré.",
  "title.busy": "En attente d’un processus libre.",
  "title.turn": "En attente de son tour.",
  "title.disk": "En attente d’espace disque.",
  "title.source": "En attente : sa source est désactivée.",
  "title.machine": "En attente de sa machine.",
  "title.time": "En attente de son heure.",
  contact: "Aucun site n’est interrogé tant qu’il n’y a pas de contact : chaque requête l’indique, pour que les propriétaires des sites puissent vous joindre. Saisissez votre adresse électronique ou web, puis vérifiez le site ; la collecte démarre ensuite d’elle-même.",
  worker: "Ce serveur a été lancé sans processus de collecte. {serve} en lance un à côté du serveur ; {start} en lance un sur une autre machine. La collecte démarre ensuite d’elle-même.",
  busy: "La collecte démarre dès qu’un processus a terminé la sienne.",
  turn: "La collecte démarre dans quelques secondes.",
  disk: "Le disque n’a plus assez de place pour de nouvelles captures. Libérez de l’espace ; la collecte démarre ensuite d’elle-même.",
  source: "Activez la source pour démarrer la collecte.",
  "do.contact": "Saisir votre contact",
  "do.disk": "Stockage",
  "do.source": "Ouvrir la source",
};
