/** A question that is answered by yes or no. */
export function Check({ label, value, onChange }: { label: string; value: boolean; onChange: (value: boolean) => void }) {
  return <label className="flex min-h-10 items-center gap-2"><input type="checkbox" className="size-5 shrink-0 accent-accent" checked={value} onChange={(event) => onChange(event.target.checked)} /><span className="min-w-0 wrap-anywhere">{label}</span></label>;
}
