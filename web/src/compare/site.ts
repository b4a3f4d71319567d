export const KINDS = ["new", "gone", "changed", "moved", "error", "unchanged"] as const;
export type SiteKind = (typeof KINDS)[number];

/** What became of one page from one crawl to the other. */
export interface SiteDifference {
  type: SiteKind;
  url: string;
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

/** Which two crawls, and of what kind the pages are that are listed. */
export interface AskedSite {
  source?: string;
  from?: number;
  to?: number;
  kind?: SiteKind;
}

/** Read the address bar; what cannot be meant is left out. */
export function readAskedSite(found: Record<string, unknown>): AskedSite {
  const id = (value: unknown) => (Number.isSafeInteger(Number(value)) && Number(value) > 0 ? Number(value) : undefined);
  const asked: AskedSite = {
    source: typeof found["source"] === "string" && found["source"] ? found["source"] : undefined,
    from: id(found["from"]),
    to: id(found["to"]),
    kind: KINDS.find((one) => one === found["kind"]),
  };
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
}
