import { Link, useNavigate } from "@tanstack/react-router";
import { SelectField } from "@/design/Field";
import { useWords } from "@/language/LanguageContext";
import { digits } from "@/page/calendar";
import { useHistory } from "@/page/useHistory";
import type { AskedComparison } from "./asked";
import type { Comparison, LiveComparison } from "./useComparison";

type Side = NonNullable<Comparison["fromSnapshot"]>;

/** The two captures that are compared; any other of the page's years can be taken instead. */
export function Pickers({ found, asked }: { found: Comparison; asked: AskedComparison }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const go = (change: Partial<AskedComparison>) => void navigate({ to: "/compare", search: { ...asked, ...change } });
  const from = found.fromSnapshot;
  const to = found.toSnapshot;
  return (
    <div className="my-4 grid gap-3 sm:grid-cols-2">
      <Picker label={t("compare.from")} side={from} url={to.originalUrl} onPick={(id) => go({ from: id, to: to.snapshotId })} />
      <Picker label={t("compare.to")} side={to} url={to.originalUrl} onPick={(id) => go({ to: id, ...(from ? { from: from.snapshotId } : {}) })} />
    </div>
  );
}

/** A capture and the page as it is now. */
export function LiveSides({ found: { archivedSnapshot: archived, liveFetch: live } }: { found: LiveComparison }) {
  const { t, moment } = useWords();
  const card = "rounded-card border border-line bg-sheet p-3";
  return (
    <div className="my-4 grid gap-3 sm:grid-cols-2">
      <div className={card}>
        <p className="text-sm text-soft">{t("compare.from")}</p>
        <Link to="/view/$timestamp" params={{ timestamp: digits(archived.captureTimestamp) }} search={{ url: archived.originalUrl }}>{moment(archived.captureTimestamp)}</Link>
        <p className="mt-2 line-clamp-2 font-semibold break-words">{archived.title}</p>
      </div>
      <div className={card}>
        <p className="text-sm text-soft">{t("compare.live")}</p>
        <p>{moment(live.fetchedAt)} · {live.statusCode}</p>
        <p className="mt-2 text-sm break-all">{live.finalUrl}</p>
        <p className="mt-2 text-sm text-soft">{t("compare.liveNote")}</p>
      </div>
    </div>
  );
}

function Picker({ label, side, url, onPick }: { label: string; side: Side | null; url: string; onPick: (id: number) => void }) {
  const { t, moment } = useWords();
  const year = side ? new Date(side.captureTimestamp).getUTCFullYear() : undefined;
  const { data } = useHistory(url, year);
  const navigate = useNavigate();
  return (
    <div className="rounded-card border border-line bg-sheet p-3">
      <SelectField label={label} value={side?.snapshotId ?? ""} onChange={(event) => { if (event.target.value === "years") void navigate({ to: "/page", search: { url, view: "list" } }); else onPick(Number(event.target.value)); }}>
        {!side && <option value="">–</option>}
        {side && !data?.items.some((one) => one.snapshotId === side.snapshotId) && <option value={side.snapshotId}>{moment(side.captureTimestamp)}</option>}
        {data?.items.map((one) => <option key={one.snapshotId} value={one.snapshotId}>{`${moment(one.captureTimestamp)}${one.isChange ? ` · ${t("page.changed")}` : ""}`}</option>)}
        <option value="years">{t("compare.choose")}…</option>
      </SelectField>
      {side && <p className="mt-2 line-clamp-2 font-semibold break-words">{side.title}</p>}
    </div>
  );
}
