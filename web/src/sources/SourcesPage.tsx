import { Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { Problem } from "@/app/Problem";
import { Card } from "@/design/Card";
import { useSources } from "@/api/useArchive";
import { EmptyArchive } from "@/home/EmptyArchive";
import { useWords } from "@/language/LanguageContext";

/** The websites that are kept, a card each. */
export function SourcesPage() {
  const { t, date } = useWords();
  const { data, error, refetch } = useSources();
  useEffect(() => { document.title = `${t("sources.title")} · Holdfast`; }, [t]);
  return (
    <>
      <h1 className="text-2xl">{t("sources.title")}</h1>
      <p className="mt-1 mb-6 text-soft">{t("sources.intro")}</p>
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {data?.length === 0 && <EmptyArchive />}
      <ul className="grid min-h-60 content-start gap-4 sm:grid-cols-2 lg:grid-cols-3">
        {data?.map((source) => (
          <li key={source.sourceCode}>
            <Card title={<Link to="/sources/$code" params={{ code: source.sourceCode }} className="[overflow-wrap:anywhere]">{source.sourceName}</Link>} className="h-full">
              {source.baseUrl && <p className="text-sm break-all text-soft">{source.baseUrl}</p>}
              {source.description && <p className="mt-2 line-clamp-3 break-words">{source.description}</p>}
              <p className="mt-3 font-serif text-xl">{t("search.capturesOf", { count: source.recordCount })}</p>
              <p className="text-sm text-soft">{t("sources.span", { from: date(source.firstCapture), to: date(source.lastCapture) })}</p>
              <p className="mt-3 flex flex-wrap gap-x-4 gap-y-1">
                <Link to="/search" search={{ source: source.sourceCode }} aria-label={`${t("sources.search")}: ${source.sourceName}`}>{t("sources.search")}</Link>
                <Link to="/changes" search={{ source: source.sourceCode }} aria-label={`${t("sources.changes")}: ${source.sourceName}`}>{t("sources.changes")}</Link>
              </p>
            </Card>
          </li>
        ))}
      </ul>
    </>
  );
}
