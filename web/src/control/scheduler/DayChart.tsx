import { clock, type Slot } from "./day";

/** The day as hours: how many runs begin in each, and where a rebalance would put them. */
export function DayChart({ slots, hasPreview }: { slots: Slot[]; hasPreview: boolean }) {
  const most = Math.max(1, ...slots.map((slot) => Math.max(slot.before, slot.after)));
  return (
    <figure>
      <figcaption className="mb-2 flex flex-wrap gap-x-5 gap-y-1 text-sm text-soft">
        <span className="inline-flex items-center gap-2"><span aria-hidden className="inline-block h-3 w-5 rounded-sm bg-accent" />runs that begin, as planned</span>
        {hasPreview && <span className="inline-flex items-center gap-2"><span aria-hidden className="inline-block h-3 w-5 rounded-sm border-2 border-dashed border-ink" />after the rebalance</span>}
        <span>UTC; the first column is the present hour</span>
      </figcaption>
      <ol tabIndex={0} aria-label="Runs by hour" className="relative grid min-w-0 grid-cols-[repeat(24,minmax(1.25rem,1fr))] gap-1 overflow-x-auto pb-1">
        {slots.map((slot) => (
          <li key={slot.hour} className="flex flex-col items-center gap-1" title={`${clock(slot.hour)} UTC`}>
            <span className="sr-only">{clock(slot.hour)}: {slot.before} planned{hasPreview && `, ${slot.after} after the rebalance`}</span>
            <span aria-hidden className="min-h-4 text-xs tabular-nums">{(hasPreview ? slot.after : slot.before) || ""}</span>
            <span aria-hidden className="relative h-32 w-full rounded-sm bg-sunk">
              <span className="absolute inset-x-0 bottom-0 rounded-sm bg-accent" style={{ height: `${(100 * slot.before) / most}%` }} />
              {hasPreview && <span className="absolute inset-x-0 bottom-0 rounded-sm border-2 border-dashed border-ink" style={{ height: slot.after ? `${(100 * slot.after) / most}%` : "0", borderWidth: slot.after ? undefined : 0 }} />}
            </span>
            <span aria-hidden className="text-xs text-soft tabular-nums">{String(slot.hour).padStart(2, "0")}</span>
          </li>
        ))}
      </ol>
    </figure>
  );
}
