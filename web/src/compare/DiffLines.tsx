import { Fragment } from "react";
import { useWords } from "@/language/LanguageContext";
import { stretchesOf, type DiffRow, type Hunk, type Line, type Pair } from "./rows";

function Words({ row, isByLine }: { row: DiffRow; isByLine: boolean }) {
  if (isByLine) return <>{row.parts.map((part) => part.text).join("")}</>;
  return (
    <>
      {row.parts.map((part, at) => {
        if (part.type === "removed") return <del key={at} className="bg-bad-wash text-bad">{part.text}</del>;
        if (part.type === "added") return <ins key={at} className="bg-good-wash text-good">{part.text}</ins>;
        return <Fragment key={at}>{part.text}</Fragment>;
      })}
    </>
  );
}

function Side({ line, sign, isByLine }: { line: Line | null; sign: "−" | "+" | ""; isByLine: boolean }) {
  const look = line === null ? "bg-sunk" : sign === "−" ? `border-l-4 border-bad ${isByLine ? "bg-bad-wash" : ""}` : sign === "+" ? `border-l-4 border-good ${isByLine ? "bg-good-wash" : ""}` : "border-l-4 border-transparent";
  return (
    <div className={`min-w-0 px-3 py-1 break-words ${look}`}>
      {line && <><span aria-hidden className="mr-3 inline-block w-8 text-right text-xs text-soft tabular-nums select-none">{line.number}</span>{sign && <span className="mr-1 font-mono">{sign}</span>}<Words row={line.row} isByLine={isByLine} /></>}
    </div>
  );
}

interface Shown {
  hunk: Hunk;
  /** The number of its first change among all. */
  first: number;
  /** The change that the reader is at. */
  at: number;
  isUnified: boolean;
  isByLine: boolean;
  /** Without the lines around the changes. */
  isBare: boolean;
}

/** Changes that lie close together, with the lines around them. */
export function DiffLines({ hunk, first, at, isUnified, isByLine, isBare }: Shown) {
  const { t } = useWords();
  let next = first;
  return (
    <div className="overflow-hidden rounded-card border border-line bg-sheet">
      {stretchesOf(hunk).map((stretch, place) => {
        if (!stretch.isChange) return isBare ? <p key={place} className="bg-sunk px-3 py-0.5 text-xs text-soft">{t("compare.skipped", { count: stretch.pairs.length })}</p> : <Fragment key={place}>{stretch.pairs.map((pair, line) => <div key={line} className={isUnified ? "" : "grid sm:grid-cols-2"}><Side line={pair.before} sign="" isByLine={isByLine} />{!isUnified && <div className="hidden sm:block"><Side line={pair.after} sign="" isByLine={isByLine} /></div>}</div>)}</Fragment>;
        const number = next++;
        return <div key={place} id={`change-${number}`} className={`scroll-mt-36 ${number === at ? "outline-2 -outline-offset-2 outline-accent" : ""}`}>{stretch.pairs.map((pair, line) => <Changed key={line} pair={pair} isUnified={isUnified} isByLine={isByLine} />)}</div>;
      })}
    </div>
  );
}

function Changed({ pair, isUnified, isByLine }: { pair: Pair; isUnified: boolean; isByLine: boolean }) {
  if (isUnified) return <>{pair.before && <Side line={pair.before} sign="−" isByLine={isByLine} />}{pair.after && <Side line={pair.after} sign="+" isByLine={isByLine} />}</>;
  return <div className="grid sm:grid-cols-2"><Side line={pair.before} sign="−" isByLine={isByLine} /><Side line={pair.after} sign="+" isByLine={isByLine} /></div>;
}
