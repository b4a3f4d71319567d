import { useRef, useState } from "react";
import { countTicks } from "@/design/axis";
import { useWords } from "@/language/LanguageContext";
import { nextBar, type Bar } from "./spans";

const HEIGHT = 64;

/**
 * Results over time. Drag over it to keep to a span. For the keyboard it is one stop: the arrows go from bar to bar,
 * with Shift they take more of them along, and Enter keeps to what is taken.
 */
export function TimeBars({ bars, isExact = true, label, onSpan }: { bars: Bar[]; isExact?: boolean; label: string; onSpan?: (from: string, to: string) => void }) {
  const { t, date, number } = useWords();
  const [from, startAt] = useState<number | null>(null);
  const [to, endAt] = useState<number | null>(null);
  const [stop, stopAt] = useState(0);
  const row = useRef<HTMLDivElement>(null);
  const ticks = countTicks(Math.max(1, ...bars.map((bar) => bar.count)), 2);
  const most = ticks.at(-1) ?? 1;
  const low = Math.min(from ?? -1, to ?? -1);
  const high = Math.max(from ?? -1, to ?? -1);
  const here = Math.min(stop, bars.length - 1);
  function letGo() {
    startAt(null);
    endAt(null);
  }
  function choose(first: number, last: number) {
    const begin = bars[Math.min(first, last)];
    const end = bars[Math.max(first, last)];
    letGo();
    if (begin && end) onSpan?.(begin.start, end.end);
  }
  function pressed(event: React.KeyboardEvent, at: number) {
    if (event.key === "Escape") letGo();
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(from ?? at, at);
    }
    const next = nextBar(event.key, at, bars.length);
    if (next === null) return;
    event.preventDefault();
    if (event.shiftKey) {
      startAt(from ?? at);
      endAt(next);
    } else letGo();
    stopAt(next);
    row.current?.querySelectorAll("button")[next]?.focus();
  }
  if (bars.length === 0) return null;
  return (
    <figure aria-label={label} className="touch-pan-y select-none" onPointerLeave={letGo}>
      <div className="flex gap-2">
        <div aria-hidden className="flex h-16 flex-col-reverse justify-between text-right text-xs leading-none text-soft tabular-nums">{ticks.map((tick) => <span key={tick}>{number(tick)}</span>)}</div>
        <div className="min-w-0 grow">
          <div ref={row} className="flex h-16 items-end gap-px border-b border-l border-edge">
            {bars.map((bar, at) => {
              const told = `${date(bar.start)} – ${date(bar.end)}: ${isExact ? number(bar.count) : t("search.countAtLeast", { count: bar.count })}`;
              const isIn = from !== null && at >= low && at <= high;
              const look = `min-w-0 flex-1 flex h-16 items-end ${isIn ? "bg-wash" : ""}`;
              const inner = <svg aria-hidden className="h-16 w-full" preserveAspectRatio="none" viewBox={`0 0 1 ${HEIGHT}`}><rect x="0" width="1" y={HEIGHT - heightOf(bar.count, most)} height={heightOf(bar.count, most)} className="fill-accent" /></svg>;
              if (!onSpan) return <span key={bar.start} title={told} className={look}>{inner}</span>;
              return (
                <button key={bar.start} type="button" title={told} aria-label={told} tabIndex={at === here ? 0 : -1} className={look}
                  onFocus={() => stopAt(at)}
                  onPointerDown={(event) => { event.currentTarget.releasePointerCapture(event.pointerId); startAt(at); endAt(at); }}
                  onPointerEnter={() => { if (from !== null) endAt(at); }}
                  onPointerUp={() => { if (from !== null) choose(from, at); }}
                  onKeyDown={(event) => pressed(event, at)}>
                  {inner}
                </button>
              );
            })}
          </div>
          <p aria-hidden className="mt-1 flex justify-between text-xs text-soft">
            <span>{date(bars[0]?.start ?? "")}</span>
            {bars.length > 4 && <span className="hidden xs:inline">{date(bars[Math.floor(bars.length / 2)]?.start ?? "")}</span>}
            <span>{date(bars.at(-1)?.end ?? "")}</span>
          </p>
        </div>
      </div>
    </figure>
  );
}

function heightOf(count: number, most: number): number {
  // At least two pixels: one capture beside a million is still there.
  return count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT);
}
