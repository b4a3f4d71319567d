import type { t } from "../control/alerts";

export const fr: Record<keyof typeof t.en, string> = {
  "name.high_error_rate": "taux d’erreurs élevé",
  "name.frontier_backlog": "file qui grandit",
  "name.worker_silent": "processus sans nouvelles",
  "name.crawl_stalled": "collecte bloquée",
  high_error_rate: "{share} des dernières réponses étaient des erreurs 4xx ou 5xx. La liste des domaines montre quels sites.",
  frontier_backlog: "La file d’attente grandit de {share} par minute. Cherchez un piège ou un périmètre trop large.",
  worker_silent: "Un processus de collecte est sans nouvelles depuis {time}. Relancez-en un : holdfast start-worker",
  crawl_stalled: "Une collecte n’a rien capturé depuis {time}. Relancez-la : holdfast auto-recover --apply",
};
