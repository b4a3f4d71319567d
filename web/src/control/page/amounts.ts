const STEPS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** Write a number of bytes as people read it; steps of a thousand, as disks are sold. */
export function bytes(count: number): string {
  let step = 0;
  let left = count;
  while (Math.abs(left) >= 999.5 && step < STEPS.length - 1) {
    left /= 1000;
    step += 1;
  }
  return `${step === 0 || left >= 99.5 ? Math.round(left) : left.toFixed(1)} ${STEPS[step]}`;
}

/** Write a length of time in its two largest parts. */
export function lasting(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 ? `${minutes} min ${whole % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** Write a number and its noun: 1 page, 2 pages, 12,000 pages. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** Write a machine's word for people: blocked_robots becomes blocked robots. */
export function plain(word: string): string {
  return word.replaceAll("_", " ");
}
