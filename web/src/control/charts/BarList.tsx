import type { ReactNode } from "react";
import { countTicks } from "@/design/axis";

const FILLS = { accent: "fill-accent", good: "fill-good", warn: "fill-warn", bad: "fill-bad", ink: "fill-ink" };

export interface NamedBar {
  name: ReactNode;
  key: string;
  value: number;
  tone?: keyof typeof FILLS;
}

/** Amounts of named things as bars, with an axis below: each bar has its name and its amount in words beside it. */
export function BarList({ label, bars, format }: { label: string; bars: NamedBar[]; format: (value: number) => string }) {
  const ticks = countTicks(Math.max(0, ...bars.map((bar) => bar.value)));
  const last = ticks.at(-1) ?? 1;
  return (
    <figure>
      <ul aria-label={label} className="grid gap-y-1.5">
        {bars.map((bar) => (
          <li key={bar.key} className="grid grid-cols-[minmax(0,9rem)_1fr] items-center gap-x-3 sm:grid-cols-[minmax(0,14rem)_1fr]">
            <span className="flex min-w-0 justify-between gap-2"><span className="truncate">{bar.name}</span><span className="shrink-0 text-sm tabular-nums">{format(bar.value)}</span></span>
            <svg aria-hidden className="block h-5 w-full border-l border-edge" preserveAspectRatio="none" viewBox="0 0 1000 10">
              {ticks.slice(1).map((tick) => <line key={tick} x1={(tick / last) * 1000} x2={(tick / last) * 1000} y1="0" y2="10" className="stroke-line" strokeWidth="1" vectorEffect="non-scaling-stroke" />)}
              <rect y="1" height="8" width={bar.value > 0 ? Math.max(4, (bar.value / last) * 1000) : 0} className={FILLS[bar.tone ?? "accent"]} />
            </svg>
          </li>
        ))}
      </ul>
      <div aria-hidden className="mt-1 grid grid-cols-[minmax(0,9rem)_1fr] gap-x-3 text-xs text-soft tabular-nums sm:grid-cols-[minmax(0,14rem)_1fr]">
        <span /><span className="flex justify-between">{ticks.map((tick) => <span key={tick}>{format(tick)}</span>)}</span>
      </div>
    </figure>
  );
}
