import type { Word } from "@/language/en";
import type { ChangeEvent } from "./useChanges";

type Say = (word: Word, values?: Record<string, string | number>) => string;
const PLAIN: Record<string, Word> = { new_page: "changes.new_page", gone: "changes.gone", unchanged: "changes.unchanged", error: "changes.error", noise: "changes.noiseOne" };

/** What happened, in a sentence of the reader's language; the server says the same in English. */
export function summaryOf(change: ChangeEvent, t: Say): string {
  const plain = PLAIN[change.changeType];
  if (plain) return t(plain);
  if (change.changeType !== "updated") return change.summary;
  const sections = (change.changedSections ?? 0) + (change.addedSections ?? 0) + (change.removedSections ?? 0);
  return sections > 0 ? t("changes.sections", { count: sections }) : t("changes.text");
}
