export interface SealedDay {
  day: string;
  bytes: number;
}

const DAY_S = 86_400;

/** Return the size of the archive at the end of each day, from the first sealed file to now; at most `most` points. */
export function sizes(growth: SealedDay[], now: number, most = 366): { times: number[]; bytes: number[] } {
  const first = growth[0];
  if (!first) return { times: [], bytes: [] };
  const start = Date.parse(`${first.day}T00:00:00Z`) / 1000;
  const days = Math.max(1, Math.floor((now - start) / DAY_S) + 1);
  const step = Math.ceil(days / most);
  const times: number[] = [start];
  const bytes: number[] = [0];
  let sum = 0;
  let at = 0;
  for (let end = start + step * DAY_S; ; end += step * DAY_S) {
    const moment = Math.min(end, now);
    for (let next = growth[at]; next && Date.parse(`${next.day}T00:00:00Z`) / 1000 < moment; next = growth[++at]) sum += next.bytes;
    times.push(moment);
    bytes.push(sum);
    if (end >= now) break;
  }
  return { times, bytes };
}

/** Return the bytes a day of the last thirty days, and in how many days the room is used up; null where it does not grow. */
export function outlook(growth: SealedDay[], now: number, freeBytes: number): { perDay: number; days: number | null } {
  const since = now - 30 * DAY_S;
  const first = growth[0];
  if (!first) return { perDay: 0, days: null };
  const span = Math.min(30, Math.max(1, (now - Date.parse(`${first.day}T00:00:00Z`) / 1000) / DAY_S));
  const lately = growth.filter((one) => Date.parse(`${one.day}T00:00:00Z`) / 1000 >= since).reduce((sum, one) => sum + one.bytes, 0);
  const perDay = lately / span;
  return { perDay, days: perDay > 0 ? Math.floor(freeBytes / perDay) : null };
}
