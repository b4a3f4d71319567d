/** Return round values from 0 to the least one that is not below the largest, at most so many steps apart. */
export function countTicks(most: number, steps = 4): number[] {
  const rough = Math.max(1, most) / steps;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? rough);
  return Array.from({ length: Math.max(1, Math.ceil(most / step)) + 1 }, (_, at) => at * step);
}
