import { clock, type Hour, type Slot } from "./day";
import { t } from "@/language/control/scheduler";

const QUARTERS = ["00", "15", "30", "45"];

/** The coming day as slots: an hour a column, a quarter of it a cell, with the runs that begin in it. */
export function DayChart({ hours, hasPreview }: { hours: Hour[]; hasPreview: boolean }) {
  const most = Math.max(1, ...hours.flatMap((hour) => hour.slots.map((slot) => Math.max(slot.before, slot.after))));
  return (
    <figure>
      <figcaption className="mb-2 flex flex-wrap gap-x-5 gap-y-1 text-sm text-soft">
        <span>{t(hasPreview ? "chartThen" : "chartNow")}</span>
        {hasPreview && <span className="inline-flex items-center gap-2"><span aria-hidden className="inline-block h-4 w-6 rounded-sm border-2 border-dashed border-ink" />{t("differs")}</span>}
      </figcaption>
      <div role="region" aria-label={t("slots")} tabIndex={0} className="relative flex gap-1 overflow-x-auto pb-1">
        <div aria-hidden className="grid shrink-0 content-start gap-1 pr-1 text-xs text-soft">{QUARTERS.map((quarter) => <span key={quarter} className="flex h-7 items-center tabular-nums">:{quarter}</span>)}</div>
        <ol className="grid min-w-0 grow grid-cols-[repeat(25,minmax(1.5rem,1fr))] gap-1">
          {hours.map((hour) => (
            <li key={hour.at} className="grid content-start gap-1 text-center">
              <span className="sr-only">{clock(hour.at)}: {spoken(hour, hasPreview)}</span>
              {hour.slots.map((slot) => <Cell key={slot.at} slot={slot} most={most} hasPreview={hasPreview} />)}
              <span aria-hidden className="text-xs text-soft tabular-nums">{clock(hour.at).slice(0, 2)}</span>
            </li>
          ))}
        </ol>
      </div>
    </figure>
  );
}

function Cell({ slot, most, hasPreview }: { slot: Slot; most: number; hasPreview: boolean }) {
  const shown = hasPreview ? slot.after : slot.before;
  const isMoved = hasPreview && slot.after !== slot.before;
  const planned = t("slotTitle", { time: clock(slot.at), number: slot.before });
  const title = isMoved ? t("slotMoved", { slot: planned, number: slot.after }) : planned;
  return (
    <span aria-hidden title={title} className={`relative flex h-7 items-center justify-center overflow-hidden rounded-sm text-xs tabular-nums ${slot.isOver ? "border border-line" : "bg-sunk"}`}>
      <span className="absolute inset-x-0 bottom-0 bg-wash" style={{ height: `${(100 * shown) / most}%` }} />
      {isMoved && <span className="absolute inset-0 rounded-sm border-2 border-dashed border-ink" />}
      <span className="relative">{shown || ""}</span>
    </span>
  );
}

function spoken(hour: Hour, hasPreview: boolean): string {
  const busy = hour.slots.filter((slot) => slot.before || slot.after);
  if (!busy.length) return t("noRuns");
  return busy.map((slot) => {
    const planned = t("slotAt", { number: slot.before, time: clock(slot.at) });
    return hasPreview && slot.after !== slot.before ? t("slotMoved", { slot: planned, number: slot.after }) : planned;
  }).join("; ");
}
