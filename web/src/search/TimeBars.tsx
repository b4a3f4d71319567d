import { useState } from "react";
import { useWords } from "@/language/LanguageContext";
import type { Bar } from "./spans";

const HEIGHT = 64;

/** Results over time. Drag over it, or tab to a bar and press Enter, to keep to a span. */
export function TimeBars({ bars, label, onSpan }: { bars: Bar[]; label: string; onSpan?: (from: string, to: string) => void }) {
  const { date, number } = useWords();
  const [from, startAt] = useState<number | null>(null);
  const [to, endAt] = useState<number | null>(null);
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  const low = Math.min(from ?? -1, to ?? -1);
  const high = Math.max(from ?? -1, to ?? -1);
  function choose(first: number, last: number) {
    const begin = bars[Math.min(first, last)];
    const end = bars[Math.max(first, last)];
    if (begin && end) onSpan?.(begin.start, end.end);
  }
  if (bars.length === 0) return null;
  return (
    <figure aria-label={label} className="touch-none select-none" onPointerLeave={() => { startAt(null); endAt(null); }}>
      <div className="flex h-16 items-end gap-px">
        {bars.map((bar, at) => {
          const told = `${date(bar.start)} – ${date(bar.end)}: ${number(bar.count)}`;
          const isIn = from !== null && at >= low && at <= high;
          const look = `min-w-0 flex-1 flex h-16 items-end ${isIn ? "bg-wash" : ""}`;
          const inner = <svg aria-hidden className="h-16 w-full" preserveAspectRatio="none" viewBox={`0 0 1 ${HEIGHT}`}><rect x="0" width="1" y={HEIGHT - heightOf(bar.count, most)} height={heightOf(bar.count, most)} className="fill-accent" /></svg>;
          if (!onSpan) return <span key={bar.start} title={told} className={look}>{inner}</span>;
          return (
            <button key={bar.start} type="button" title={told} aria-label={told} className={look}
              onPointerDown={(event) => { event.currentTarget.releasePointerCapture(event.pointerId); startAt(at); endAt(at); }}
              onPointerEnter={() => { if (from !== null) endAt(at); }}
              onPointerUp={() => { if (from !== null) choose(from, at); startAt(null); endAt(null); }}
              onKeyDown={(event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(at, at); } }}>
              {inner}
            </button>
          );
        })}
      </div>
      <figcaption className="mt-1 flex justify-between text-xs text-soft">
        <span>{date(bars[0]?.start ?? "")}</span><span>{date(bars.at(-1)?.end ?? "")}</span>
      </figcaption>
    </figure>
  );
}

function heightOf(count: number, most: number): number {
  // At least two pixels: one capture beside a million is still there.
  return count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT);
}
