export interface Bar {
  /** First day of it, as YYYY-MM-DD. */
  start: string;
  /** Last day of it. */
  end: string;
  count: number;
}

type Unit = "day" | "month" | "year";
const MOST = 400;

function endOf(start: Date, unit: Unit): Date {
  const next = new Date(start);
  if (unit === "day") next.setUTCDate(next.getUTCDate() + 1);
  if (unit === "month") next.setUTCMonth(next.getUTCMonth() + 1, 1);
  if (unit === "year") next.setUTCFullYear(next.getUTCFullYear() + 1, 0, 1);
  return next;
}

const day = (moment: Date) => moment.toISOString().slice(0, 10);

/** Return a bar for every unit between the first and the last, also for those in which nothing was captured. */
export function barsOf(buckets: { start: string; count: number }[], unit: string): Bar[] {
  const first = buckets[0];
  const last = buckets.at(-1);
  if (!first || !last || !["day", "month", "year"].includes(unit)) return [];
  const counts = new Map(buckets.map((one) => [one.start.slice(0, 10), one.count]));
  const bars: Bar[] = [];
  for (let at = new Date(`${first.start.slice(0, 10)}T00:00:00Z`); day(at) <= last.start.slice(0, 10) && bars.length < MOST;) {
    const next = endOf(at, unit as Unit);
    bars.push({ start: day(at), end: day(new Date(next.getTime() - 86_400_000)), count: counts.get(day(at)) ?? 0 });
    at = next;
  }
  return bars;
}

/** Where a key leads among so many bars; null if it leads nowhere. */
export function nextBar(key: string, here: number, count: number): number | null {
  if (key === "ArrowRight") return Math.min(here + 1, count - 1);
  if (key === "ArrowLeft") return Math.max(here - 1, 0);
  if (key === "Home") return 0;
  return key === "End" ? count - 1 : null;
}
