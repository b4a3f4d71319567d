import type { t } from "../control/audit";

export const fr: Record<keyof typeof t.en, string> = {
  title: "Journal d’audit",
  intro: "Qui a fait quoi, quand, d’où et pourquoi. Rien ne peut y être modifié ici.",
  filterLog: "Filtrer le journal",
  who: "Qui",
  didWhat: "Action",
  toWhat: "Objet",
  from: "Du",
  to: "Au",
  filter: "Filtrer",
  all: "Tout",
  noneHow: "Retirez un filtre. Qui et objet sont cherchés tels quels ; une action aussi par son premier mot.",
  when: "Quand",
  detail: "Détail",
};
