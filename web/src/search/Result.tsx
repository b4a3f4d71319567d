import { Link } from "@tanstack/react-router";
import { Fragment, type Ref } from "react";
import { Tag } from "@/design/Tag";
import { useWords } from "@/language/LanguageContext";
import { digits } from "@/page/calendar";
import { changed, type Asked } from "./asked";
import type { Piece, SearchResult } from "./useSearch";

/** Text with what was looked for marked; pieces come from the server as text and stay text. */
export function Marked({ pieces }: { pieces: Piece[] }) {
  return <>{pieces.map((piece, at) => (piece.hit ? <mark key={at}>{piece.text}</mark> : <Fragment key={at}>{piece.text}</Fragment>))}</>;
}

export function shownLanguage(language: string, code: string): string {
  try {
    return new Intl.DisplayNames(language, { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

/** One result: what it is called, where it was, when, and the passages that match. */
export function Result({ result, asked, ref }: { result: SearchResult; asked: Asked; ref?: Ref<HTMLAnchorElement> }) {
  const { t, date, localMoment, language } = useWords();
  const title = result.highlights.title.length > 0 ? <Marked pieces={result.highlights.title} /> : result.title || t("search.noTitle");
  const count = result.pageSnapshotsCount;
  return (
    <article className="border-b border-line py-4 last:border-0">
      <h2 className="text-lg break-words"><Link ref={ref} to="/view/$timestamp" params={{ timestamp: digits(result.captureTimestamp) }} search={{ url: result.originalUrl }}>{title}</Link></h2>
      <p className="text-sm break-all text-soft">{result.originalUrl}</p>
      {result.highlights.text.map((pieces, at) => <p key={at} lang={result.language ?? undefined} className="mt-1 break-words"><Marked pieces={pieces} /></p>)}
      <p className="mt-2 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-soft">
        <time dateTime={result.captureTimestamp} title={localMoment(result.captureTimestamp)}>{date(result.captureTimestamp)}</time>
        <span className="break-words">{result.sourceName}</span>
        {result.language && <span>{shownLanguage(language, result.language)}</span>}
        <Link to="/page" search={{ url: result.originalUrl }}>{count !== null ? t("search.capturesOf", { count }) : t("search.openPage")}<span className="sr-only">: {result.originalUrl}</span></Link>
        {result.similarCount ? <Link to="/search" search={changed(asked, { similarTo: result.id })}>{t("search.similar", { count: result.similarCount })}</Link> : null}
        {result.statusCode !== null && result.statusCode >= 300 && <Tag tone={result.statusCode >= 400 ? "bad" : "warn"}>{result.statusCode}</Tag>}
        {result.noise && <Tag tone="warn">{t("search.noise")}</Tag>}
      </p>
    </article>
  );
}
