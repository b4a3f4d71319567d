import type { Tone } from "@/design/Tag";
import { t } from "@/language/control/outcomes";
import { spoken } from "@/language/spoken";

const TONES: Record<string, Tone> = { success: "good", excluded: "plain", blocked_robots: "warn", blocked_4xx: "warn", open: "accent" };

/** The server's word for an outcome, in the language of the page. */
export function outcomeWord(word: string): string {
  return t.of("outcome", word);
}

/** What a reason says besides the outcome's word: a status, a line of robots.txt, a rule or a limit. */
export function reasonText(reason: string): string {
  const [kind = "", ...rest] = reason.split(":");
  const detail = rest.join(":");
  if (reason.startsWith("http_")) return `HTTP ${reason.slice(5)}`;
  if (kind === "robots" && detail.startsWith("line ")) return t("robotsLine", { line: detail.slice(5) });
  if (kind === "exclude") return detail;
  return kind === "over_limit" || kind === "trap" ? t.of("reason", detail) : t.of("reason", reason);
}

interface Ruling {
  allowed: boolean;
  line: number | null;
  rule: string | null;
}

/** Say which line of robots.txt decides about an address; null where none does. */
export function robotsText({ allowed, line, rule }: Ruling): string | null {
  return line === null ? null : t(allowed ? "lineAllows" : "lineForbids", { line: String(line), rule: rule ?? "" });
}

/** Say which rule of a source decides about an address; null for what only the server's own sentence says. */
export function ruleText(rule: string, isInScope: boolean): string | null {
  const [kind = "", ...rest] = rule.split(":");
  const what = rest.join(":");
  const [group, word] = kind === "scope" ? [isInScope ? "in" : "out", what] : ["rule", kind];
  return `${group}.${word}` in t.en ? t.of(group, word, { what: kind === "trap" ? t.of("reason", what) : what }) : null;
}

/** How a run ended, in the language of the page; in French without the counts, which the summary of the run has. */
export function endingText({ state, reason, sentence }: { state: string; reason: string | null; sentence: string }): string {
  if (spoken.language === "en") return sentence;
  // Tools and imports give no reason for a good end.
  const rule = `${state}.${reason ?? (state === "completed" ? "done" : "")}`;
  return t.of("end", `end.${rule}` in t.en ? rule : "otherwise");
}

/** How an outcome looks; its word comes from the server. */
export function outcomeTone(outcome: string | null): Tone {
  return TONES[outcome ?? "open"] ?? "bad";
}

export interface Reason {
  outcome: string;
  reason: string;
  word: string;
  count: number;
  examples: string[];
}

/** How many addresses a run had not got to when it was stopped or came to a limit; the server closes them as left out. */
export function leftOf(reasons: readonly Reason[]): number {
  return reasons.filter(isLeft).reduce((sum, one) => sum + one.count, 0);
}

function isLeft({ outcome, reason }: Reason): boolean {
  return outcome === "excluded" && (reason === "stopped" || reason === "cancelled" || /^over_limit:max_/.test(reason));
}

/** The endings of a run's addresses by their words, the most frequent first: they add up to all that have ended. */
export function wordsOf(reasons: readonly Reason[]): { word: string; tone: Tone; count: number }[] {
  const found = new Map<string, { word: string; tone: Tone; count: number }>();
  for (const { outcome, word, count } of reasons) {
    if (outcome === "open") continue;
    const one = found.get(word) ?? { word, tone: outcomeTone(outcome), count: 0 };
    one.count += count;
    found.set(word, one);
  }
  return [...found.values()].sort((a, b) => b.count - a.count);
}

/** Why addresses were not captured, errors before what rules left out, the most frequent first. */
export function missesOf(reasons: readonly Reason[]): Reason[] {
  const isError = ({ outcome }: Reason) => outcome !== "excluded" && outcome !== "blocked_robots";
  return reasons.filter(({ outcome }) => outcome !== "success" && outcome !== "open").sort((a, b) => Number(isError(b)) - Number(isError(a)) || b.count - a.count);
}

/** Whether nothing is to be said of a host but that its run has ended: it is well, and waits for nothing. */
export function hasOnlyEnded(state: string, isRunning: boolean): boolean {
  return !isRunning && (state === "ready" || state === "resting" || state === "active");
}
