export const KINDS = ["new", "gone", "changed", "moved", "error", "unchanged", "withdrawn"] as const;
export type SiteKind = (typeof KINDS)[number];

/** What became of one page from one crawl, or edition, to the other. */
export interface SiteDifference {
  type: SiteKind;
  /** Null where it was withdrawn: then nothing of it is told. */
  url: string | null;
  fromUrl: string | null;
  fromSnapshotId: number | null;
  toSnapshotId: number | null;
}

export interface SiteComparison {
  differences: SiteDifference[];
  counts: Record<string, number>;
  next: string | null;
}

/** Read an answer: a page a line, then a line with the counts. What is no line of ours is passed over. */
export function readLines(text: string): SiteComparison {
  const found: SiteComparison = { differences: [], counts: {}, next: null };
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const told = JSON.parse(line) as Partial<SiteDifference> & { counts?: Record<string, number>; next?: string | null };
    if (told.counts) {
      found.counts = told.counts;
      found.next = told.next ?? null;
    } else if (KINDS.some((kind) => kind === told.type) && typeof told.url === "string") {
      found.differences.push(told as SiteDifference);
    }
  }
  return found;
}

/** Put the answer to a second question behind the first. */
export function joined(one: SiteComparison, more: SiteComparison): SiteComparison {
  const counts = { ...one.counts };
  for (const [kind, count] of Object.entries(more.counts)) counts[kind] = (counts[kind] ?? 0) + count;
  return { differences: [...one.differences, ...more.differences], counts, next: more.next };
}

/** Which two crawls or editions, and of what kind the pages are that are listed. */
export interface AskedSite {
  source?: string;
  /** Editions, named by their years; else crawls, named by their numbers. */
  of?: "editions";
  from?: number;
  to?: number;
  kind?: SiteKind;
}

/** Read the address bar; what cannot be meant is left out. */
export function readAskedSite(found: Record<string, unknown>): AskedSite {
  const id = (value: unknown) => (Number.isSafeInteger(Number(value)) && Number(value) > 0 ? Number(value) : undefined);
  const asked: AskedSite = {
    source: typeof found["source"] === "string" && found["source"] ? found["source"] : undefined,
    of: found["of"] === "editions" ? "editions" : undefined,
    from: id(found["from"]),
    to: id(found["to"]),
    kind: KINDS.find((one) => one === found["kind"]),
  };
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
}
