import { Fragment } from "react";
import { pairsOf, type DiffRow, type Hunk, type Line } from "./rows";

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

/** One place that changed, with the lines around it. */
export function DiffLines({ hunk, isUnified, isByLine, isHere, id }: { hunk: Hunk; isUnified: boolean; isByLine: boolean; isHere: boolean; id: string }) {
  const pairs = pairsOf(hunk);
  return (
    <div id={id} tabIndex={-1} className={`scroll-mt-16 overflow-hidden rounded-card border bg-sheet ${isHere ? "border-accent" : "border-line"}`}>
      {pairs.map((pair, at) => {
        if (!pair.isChange) return <div key={at} className={isUnified ? "" : "grid sm:grid-cols-2"}><Side line={pair.before} sign="" isByLine={isByLine} />{!isUnified && <div className="hidden sm:block"><Side line={pair.after} sign="" isByLine={isByLine} /></div>}</div>;
        if (isUnified) return <div key={at}>{pair.before && <Side line={pair.before} sign="−" isByLine={isByLine} />}{pair.after && <Side line={pair.after} sign="+" isByLine={isByLine} />}</div>;
        return <div key={at} className="grid sm:grid-cols-2"><Side line={pair.before} sign="−" isByLine={isByLine} /><Side line={pair.after} sign="+" isByLine={isByLine} /></div>;
      })}
    </div>
  );
}
