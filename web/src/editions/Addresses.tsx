import { Link } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { useWords } from "@/language/LanguageContext";
import type { AskedEdition } from "./asked";
import { useAddresses } from "./useEditions";

const ORIGINS = ["seed", "sitemap", "feed", "link", "crawler"] as const;

/** The addresses behind one part of the picture. */
export function Addresses({ source, year, asked }: { source: string; year: number; asked: AskedEdition }) {
  const { t } = useWords();
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useAddresses(source, year, asked);
  if (!asked.outcome) return null;
  const what = `${t(`outcome.${asked.outcome}`, { count: 2 })}${asked.reason ? `, ${asked.reason}` : ""}`;
  const rows = data?.pages.flatMap((page) => page.items);
  return (
    <Card title={t("edition.addresses", { what })} className="min-h-48">
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {rows && (
        <DataTable caption={t("edition.addresses", { what })} rows={rows} keyOf={(one) => one.url} empty={<p className="text-soft">{t("edition.noAddresses")}</p>}
          columns={[
            { head: t("edition.address"), cell: (one) => one.snapshotId !== null ? <Link to="/page" search={{ url: one.url, year }} className="break-all">{one.url}</Link> : <span className="break-all">{one.url}</span> },
            { head: t("edition.reason"), cell: (one) => <code className="text-sm break-all">{one.reason}</code> },
            { head: t("edition.origin"), cell: (one) => { const origin = ORIGINS.find((known) => known === one.origin); return origin ? t(`origin.${origin}`) : one.origin; } },
          ]} />
      )}
      {hasNextPage && <div className="mt-4"><Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>{t("editions.more")}</Button></div>}
    </Card>
  );
}
