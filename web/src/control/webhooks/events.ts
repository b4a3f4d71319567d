
import { t } from "@/language/control/webhooks";
/** What webhooks can be told of, by group; `group.*` means all of it. */
export const EVENTS: Record<string, string[]> = {
  job: ["created", "scheduled", "paused", "completed", "failed", "cancelled"],
  execution: ["queued", "started", "paused", "resumed", "completed", "failed", "cancelled", "indexed", "index_failed"],
  change: ["detected", "new_page"],
  edition: ["reported", "frozen"],
  alert: ["firing", "resolved"],
  report: ["created"],
};

/** Whether an event is among those that are chosen. */
export function isChosen(chosen: readonly string[], group: string, word?: string): boolean {
  return chosen.includes(`${group}.*`) || (word !== undefined && chosen.includes(`${group}.${word}`));
}

/** Return the chosen events with one switched; a whole group is written as `group.*`. */
export function switched(chosen: readonly string[], group: string, word?: string): string[] {
  const words = EVENTS[group] ?? [];
  const others = chosen.filter((one) => !one.startsWith(`${group}.`));
  if (word === undefined) return isChosen(chosen, group) ? others : [...others, `${group}.*`];
  const own = words.filter((one) => isChosen(chosen, group, one) !== (one === word));
  return own.length === words.length ? [...others, `${group}.*`] : [...others, ...own.map((one) => `${group}.${one}`)];
}

/** Say which events are chosen; none means all. */
export function toldEvents(chosen: readonly string[]): string {
  return chosen.length === 0 ? t("everything") : chosen.map((one) => {
    const [group = "", word = ""] = one.split(".", 2);
    return word === "*" ? t("allOf", { group: t.of("group", group) }) : t("oneEvent", { group: t.of("group", group), word: t.of("word", word) });
  }).join(", ");
}
