/** How far something is, as a bar with its words; without a total only the words. */
export function Meter({ label, done, total, text }: { label: string; done: number; total: number | null | undefined; text: string }) {
  const share = total ? Math.min(1, done / total) : null;
  return (
    <div>
      <div role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={share === null ? undefined : Math.round(share * 100)} aria-valuetext={text} className="h-2 w-full overflow-hidden rounded-full border border-line bg-sunk">
        <div className="h-full bg-accent transition-[width]" style={{ width: share === null ? "0" : `${share * 100}%` }} />
      </div>
      <p className="mt-1 text-sm text-soft tabular-nums">{text}</p>
    </div>
  );
}
