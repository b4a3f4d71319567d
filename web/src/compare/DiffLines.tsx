import { Fragment } from "react";
import type { components } from "@/api/schema";
import { pairsOf, type DiffRow, type Line } from "./rows";

type Hunk = components["schemas"]["DiffHunk"];

function Words({ row }: { row: DiffRow }) {
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

function Side({ line, sign }: { line: Line | null; sign: "−" | "+" | "" }) {
  const look = line === null ? "bg-sunk" : sign === "−" ? "border-l-4 border-bad" : sign === "+" ? "border-l-4 border-good" : "border-l-4 border-transparent";
  return (
    <div className={`min-w-0 px-3 py-1 break-words ${look}`}>
      {line && <><span aria-hidden className="mr-3 inline-block w-8 text-right text-xs text-soft tabular-nums select-none">{line.number}</span>{sign && <span className="mr-1 font-mono">{sign}</span>}<Words row={line.row} /></>}
    </div>
  );
}

/** One place that changed, with the lines around it. */
export function DiffLines({ hunk, isUnified, id }: { hunk: Hunk; isUnified: boolean; id: string }) {
  const pairs = pairsOf(hunk);
  return (
    <div id={id} tabIndex={-1} className="scroll-mt-4 overflow-hidden rounded-card border border-line bg-sheet">
      {pairs.map((pair, at) => {
        if (!pair.isChange) return <div key={at} className={isUnified ? "" : "grid sm:grid-cols-2"}><Side line={pair.before} sign="" />{!isUnified && <div className="hidden sm:block"><Side line={pair.after} sign="" /></div>}</div>;
        if (isUnified) return <div key={at}>{pair.before && <Side line={pair.before} sign="−" />}{pair.after && <Side line={pair.after} sign="+" />}</div>;
        return <div key={at} className="grid sm:grid-cols-2"><Side line={pair.before} sign="−" /><Side line={pair.after} sign="+" /></div>;
      })}
    </div>
  );
}
