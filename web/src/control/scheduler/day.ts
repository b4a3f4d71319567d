import { t } from "@/language/control/scheduler";

export interface SlotLoad {
  starts_at: string;
  job_count: number;
}

export interface Move {
  job_id: number;
  old_time: string;
  new_time: string;
}

export interface Slot {
  /** When it begins, in milliseconds. */
  at: number;
  before: number;
  after: number;
  isOver: boolean;
}

export interface Hour {
  at: number;
  slots: Slot[];
}

const SLOT_MS = 15 * 60_000;
const HOUR_MS = 4 * SLOT_MS;

/** Return the coming day hour by hour, the present one first, each with its four slots, before and after a rebalance. */
export function dayHours(loads: SlotLoad[], moves: Move[], now: number): Hour[] {
  const start = Math.floor(now / HOUR_MS) * HOUR_MS;
  const present = Math.floor(now / SLOT_MS) * SLOT_MS;
  // The window ends within the hour in which it began, a day later.
  const slots = Array.from({ length: 25 * 4 }, (_, place): Slot => ({ at: start + place * SLOT_MS, before: 0, after: 0, isOver: start + place * SLOT_MS < present }));
  const at = (moment: string) => slots[Math.floor((Math.max(Date.parse(moment), present) - start) / SLOT_MS)];
  for (const load of loads) {
    const slot = at(load.starts_at);
    if (!slot) continue;
    slot.before += load.job_count;
    slot.after += load.job_count;
  }
  for (const move of moves) {
    const from = at(move.old_time);
    const to = at(move.new_time);
    if (from) from.after = Math.max(0, from.after - 1);
    if (to) to.after += 1;
  }
  return Array.from({ length: 25 }, (_, hour) => ({ at: start + hour * HOUR_MS, slots: slots.slice(4 * hour, 4 * hour + 4) }));
}

/** Write a moment as people read a clock, in UTC. */
export function clock(at: number): string {
  return new Date(at).toISOString().slice(11, 16);
}

/** Write the hour of a day as people read a clock. */
export function hourClock(hour: number): string {
  return `${String(hour).padStart(2, "0")}:00`;
}

/** Count the jobs that stay by their reason, the most frequent first. */
export function stays(skipped: { reason: string }[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { reason } of skipped) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([reason, count]) => [t.of("why", reason), count]);
}
