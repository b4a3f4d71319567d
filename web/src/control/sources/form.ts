import type { ApiProblem } from "@/api/problem";
import { fieldOf, linesOf } from "./fields";
import { NEVER, readWords, wordsOf, type When } from "./schedule";
import type { Source } from "./useSources";
import { t } from "@/language/control/sources";

/** A source as a form holds it: text in every box. */
export interface Draft extends When {
  code: string;
  name: string;
  description: string;
  visibility: "public" | "members";
  enabled: boolean;
  seeds: string;
  scope: string;
  include: string;
  exclude: string;
  maxDepth: string;
  maxPages: string;
  delay: string;
  robots: "obey" | "ignore";
  robotsReason: string;
  sitemaps: boolean;
  feeds: boolean;
  requisites: boolean;
}

export const EMPTY: Draft = {
  code: "", name: "", description: "", visibility: "public", enabled: true, seeds: "", scope: "host", include: "", exclude: "", maxDepth: "3", maxPages: "",
  delay: "", robots: "obey", robotsReason: "", sitemaps: true, feeds: false, requisites: true, ...NEVER,
};

/** Return a draft as it was written down, null if that is none: every field of today's form, of the same kind. */
export function readDraft(text: string | null): Draft | null {
  try {
    const found: unknown = JSON.parse(text ?? "null");
    if (typeof found !== "object" || found === null) return null;
    const fields = found as Record<string, unknown>;
    return Object.entries(EMPTY).every(([name, value]) => typeof fields[name] === typeof value) ? (found as Draft) : null;
  } catch {
    return null;
  }
}

/** What somebody was changing in a source, and what it was like when that began. */
export interface Edit {
  draft: Draft;
  before: Draft;
}

/** Return an edit as it was written down, null if that is none. */
export function readEdit(text: string | null): Edit | null {
  try {
    const found = JSON.parse(text ?? "null") as Partial<Record<keyof Edit, unknown>> | null;
    const draft = readDraft(JSON.stringify(found?.draft ?? null));
    const before = readDraft(JSON.stringify(found?.before ?? null));
    return draft && before ? { draft, before } : null;
  } catch {
    return null;
  }
}

export const SCOPES = ["page", "prefix", "host", "domain", "any"] as const;

/** Return the form of a source that is there. */
export function draftOf(source: Source): Draft {
  const { config } = source;
  const shown = (value: number | null | undefined, missing = "") => (value === null || value === undefined ? missing : String(value));
  return {
    code: source.code,
    name: source.name,
    description: source.description ?? "",
    visibility: source.visibility === "members" ? "members" : "public",
    enabled: source.enabled,
    seeds: (config.seeds ?? (source.base_url ? [source.base_url] : [])).join("\n"),
    scope: config.scope ?? EMPTY.scope,
    include: (config.include ?? []).join("\n"),
    exclude: (config.exclude ?? []).join("\n"),
    maxDepth: shown(config.max_depth, EMPTY.maxDepth),
    maxPages: shown(config.max_pages),
    delay: shown(config.delay_s),
    robots: config.robots === "ignore" ? "ignore" : "obey",
    robotsReason: config.robots_reason ?? "",
    sitemaps: config.sitemaps ?? true,
    feeds: config.feeds ?? false,
    requisites: config.requisites ?? true,
    ...readWords(source.schedule),
  };
}

/** What was changed in the form stays; everything else is as the server has it now. */
export function mergedDraft(draft: Draft, before: Draft, now: Draft): Draft {
  const names = Object.keys(now) as (keyof Draft)[];
  return Object.fromEntries(names.map((name) => [name, draft[name] === before[name] ? now[name] : draft[name]])) as unknown as Draft;
}

/** Fields of a configuration that the form has; all others stay as they are. */
const OWN = ["seeds", "scope", "include", "exclude", "max_depth", "max_pages", "delay_s", "robots", "robots_reason", "sitemaps", "feeds", "requisites"];

/** Return what is sent to the server: the form, and what the source has besides. */
export function contentOf(draft: Draft, before?: Source): Record<string, unknown> {
  const kept = Object.fromEntries(Object.entries(before?.config ?? {}).filter(([name]) => !OWN.includes(name)));
  const seeds = linesOf(draft.seeds);
  const config: Record<string, unknown> = {
    ...kept,
    seeds,
    scope: draft.scope,
    include: linesOf(draft.include),
    exclude: linesOf(draft.exclude),
    ...numbered("max_depth", draft.maxDepth),
    ...numbered("max_pages", draft.maxPages),
    ...numbered("delay_s", draft.delay),
    robots: draft.robots,
    ...(draft.robots === "ignore" && draft.robotsReason ? { robots_reason: draft.robotsReason } : {}),
    sitemaps: draft.sitemaps,
    feeds: draft.feeds,
    requisites: draft.requisites,
  };
  return {
    ...(draft.code.trim() ? { code: draft.code.trim() } : {}),
    ...(draft.name.trim() ? { name: draft.name.trim() } : {}),
    ...(draft.description.trim() ? { description: draft.description.trim() } : {}),
    ...(before?.base_url ? { base_url: before.base_url } : {}),
    enabled: draft.enabled,
    visibility: draft.visibility,
    schedule: wordsOf(draft),
    config,
  };
}

/** Return the fields that differ, below `config` too; null for one that has its default again. Nobody else's change of another field is undone. */
export function changesOf(now: Record<string, unknown>, before: Record<string, unknown>): Record<string, unknown> {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])].filter((name) => JSON.stringify(now[name]) !== JSON.stringify(before[name]));
  const changed = (name: string) => (name === "config" ? changesOf(now[name] as Record<string, unknown>, before[name] as Record<string, unknown>) : (now[name] ?? null));
  return Object.fromEntries(names.map((name) => [name, changed(name)]));
}

function numbered(name: string, text: string): Record<string, number> {
  return text.trim() === "" ? {} : { [name]: Number(text) };
}

/** What the boxes of the form are called, by the field that the server names. */
const LABELS: Record<string, Parameters<typeof t>[0]> = {
  seeds: "seeds", base_url: "seeds", name: "name", code: "id", description: "description", visibility: "visible", scope: "scope", include: "include", exclude: "exclude",
  max_depth: "depth", max_pages: "limit", delay_s: "delay", robots: "robots", robots_reason: "reason", schedule: "often",
};

/** Return the label of the box that a problem is about; null if the form has none for it. */
export function labelOf(problem: ApiProblem | null): string | null {
  const label = LABELS[fieldOf(problem)];
  return label ? t(label) : null;
}
