export interface Hour {
  hour: number;
  job_count: number;
}

export interface Move {
  job_id: number;
  old_time: string;
  new_time: string;
}

export interface Slot {
  hour: number;
  before: number;
  after: number;
}

/** Return the 24 hours of the day from the present one on, with the runs in each before and after a rebalance. */
export function daySlots(hours: Hour[], moves: Move[], startHour: number): Slot[] {
  const slots = Array.from({ length: 24 }, (_, hour): Slot => {
    const count = hours.find((one) => one.hour === hour)?.job_count ?? 0;
    return { hour, before: count, after: count };
  });
  for (const move of moves) {
    const from = slots[new Date(move.old_time).getUTCHours()];
    const to = slots[new Date(move.new_time).getUTCHours()];
    if (from) from.after = Math.max(0, from.after - 1);
    if (to) to.after += 1;
  }
  const start = ((startHour % 24) + 24) % 24;
  return [...slots.slice(start), ...slots.slice(0, start)];
}

/** Write an hour as people read a clock. */
export function clock(hour: number): string {
  return `${String(hour).padStart(2, "0")}:00`;
}

const WHY: Record<string, string> = {
  job_running: "runs now",
  protection_window: "starts too soon to be moved",
  placement_cooldown: "was moved a short while ago",
  already_balanced: "has a good place already",
  interval_below_slot: "runs more often than there are slots",
  runs_once: "runs once, at its own time",
};

/** Count the jobs that stay by their reason, the most frequent first. */
export function stays(skipped: { reason: string }[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { reason } of skipped) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([reason, count]) => [WHY[reason] ?? reason.replaceAll("_", " "), count]);
}
