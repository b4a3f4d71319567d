import { share } from "./format";

const FILLS = { accent: "fill-accent", good: "fill-good", warn: "fill-warn", bad: "fill-bad" };

/** A part of a whole as a bar; what stands beside it says the numbers. */
export function Meter({ label, value, most, tone = "accent" }: { label: string; value: number; most: number; tone?: keyof typeof FILLS }) {
  const part = most > 0 ? Math.min(1, Math.max(0, value / most)) : 0;
  return (
    <div role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={most} aria-valuenow={Math.min(value, most)} aria-valuetext={share(part)} className="mt-1 overflow-hidden rounded-full border border-line bg-sunk">
      <svg aria-hidden className="block h-2.5 w-full" preserveAspectRatio="none" viewBox="0 0 1000 1"><rect width={part > 0 ? Math.max(4, part * 1000) : 0} height="1" className={FILLS[tone]} /></svg>
    </div>
  );
}
