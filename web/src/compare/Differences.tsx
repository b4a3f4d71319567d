import { Link } from "@tanstack/react-router";
import { ChangeTag } from "@/changes/ChangeTag";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import { KINDS, type SiteDifference, type SiteKind } from "./site";

/** Of two crawls or editions an error says that the later one did not find out, not that a capture failed. */
const named = (kind: string) => (kind === "error" ? "missed" : kind);

/** How many pages are new, gone, changed and so on; each number leads to its list. */
export function Kinds({ counts, chosen, onChoose }: { counts: Record<string, number>; chosen: SiteKind | undefined; onChoose: (kind: SiteKind | undefined) => void }) {
  const { t, number } = useWords();
  const shown = KINDS.filter((kind) => kind === chosen || (kind !== "unchanged" && (counts[kind] ?? 0) > 0));
  return (
    <div role="group" aria-label={t("site.kind")} className="mb-4 flex flex-wrap items-center gap-2">
      {shown.map((kind) => (
        <button key={kind} type="button" aria-pressed={chosen === kind} onClick={() => onChoose(chosen === kind ? undefined : kind)} className="inline-flex min-h-9 items-center gap-2 rounded-full border border-edge bg-sheet py-1 pr-3 pl-1.5 hover:bg-sunk aria-pressed:border-accent aria-pressed:bg-wash">
          <ChangeTag change={named(kind)} /><span className="tabular-nums">{number(counts[kind] ?? 0)}</span>
        </button>
      ))}
      <span className="text-soft">{t("site.unchanged", { count: counts["unchanged"] ?? 0 })}</span>
    </div>
  );
}

/** What became of each page; one that changed leads to its two captures side by side. */
export function Differences({ rows, kind }: { rows: SiteDifference[]; kind: SiteKind | undefined }) {
  const { t } = useWords();
  return (
    <DataTable caption={t("site.title")} rows={rows.map((one, at) => ({ ...one, at }))} keyOf={(one) => one.at} empty={kind ? <Notice title={t("edition.noAddresses")} /> : <Notice tone="good" title={t("site.none")} />}
      columns={[
        { head: t("site.kind"), cell: (one) => <ChangeTag change={named(one.type)} /> },
        { head: t("edition.address"), cell: (one) => <Address one={one} /> },
        { head: t("compare.title"), cell: (one) => <Ways one={one} /> },
      ]} />
  );
}

function Address({ one }: { one: SiteDifference }) {
  const { t } = useWords();
  if (one.url === null) return <span className="text-soft">{t("site.withdrawn")}</span>;
  const there = <Link to="/page" search={{ url: one.url }}>{one.url}</Link>;
  if (!one.fromUrl || one.fromUrl === one.url) return <span className="break-all">{there}</span>;
  return (
    <span className="break-all">
      <span className="sr-only">{t("site.movedFrom")} </span><Link to="/page" search={{ url: one.fromUrl }} className="text-soft">{one.fromUrl}</Link>
      <span className="block"><span aria-hidden className="mr-1 text-soft">→</span><span className="sr-only">{t("site.movedTo")} </span>{there}</span>
    </span>
  );
}

function Ways({ one }: { one: SiteDifference }) {
  const { t } = useWords();
  if (one.type !== "changed" || one.toSnapshotId === null || one.fromSnapshotId === null) return "–";
  return <Link to="/compare" search={{ from: one.fromSnapshotId, to: one.toSnapshotId }} aria-label={`${t("changes.compare")}: ${one.url}`}>{t("changes.compare")}</Link>;
}
