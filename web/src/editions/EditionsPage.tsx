import { useEffect } from "react";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import { EditionCard } from "./EditionCard";
import { useEditions } from "./useEditions";

/** The yearly views of sources, a card each. */
export function EditionsPage() {
  const { t } = useWords();
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useEditions();
  const editions = data?.pages.flatMap((page) => page.items);
  useEffect(() => { document.title = `${t("editions.title")} · Holdfast`; }, [t]);
  return (
    <>
      <h1 className="text-2xl">{t("editions.title")}</h1>
      <p className="mt-1 mb-6 max-w-2xl text-soft">{t("editions.intro")}</p>
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {editions?.length === 0 && <Notice title={t("editions.none")}>{t("editions.noneHow")}</Notice>}
      <ul className="grid min-h-40 gap-4 sm:grid-cols-2 lg:grid-cols-3">
        {editions?.map((edition) => <li key={`${edition.sourceCode} ${edition.year}`}><EditionCard edition={edition} /></li>)}
      </ul>
      {hasNextPage && <div className="mt-6 text-center"><Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>{t("editions.more")}</Button></div>}
    </>
  );
}
