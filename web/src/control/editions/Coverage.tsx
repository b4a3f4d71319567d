import { count } from "@/control/charts/format";
import { Tag, type Tone } from "@/design/Tag";
import type { Edition } from "./useEditions";
import { t } from "@/language/control/editions";

const PARTS = [
  { key: "captured", tone: "bg-good", count: (one: Edition) => one.capturedUrlCount },
  { key: "failed", tone: "bg-bad", count: (one: Edition) => one.failedUrlCount },
  { key: "missing", tone: "bg-warn", count: (one: Edition) => one.missingUrlCount },
  { key: "excluded", tone: "bg-edge", count: (one: Edition) => one.excludedUrlCount },
] as const;

/** What was intended, in four parts; the numbers say the same in words. */
export function CoverageBar({ edition, isLarge = false }: { edition: Edition; isLarge?: boolean }) {
  const all = Math.max(1, edition.intendedUrlCount);
  return (
    <div className="min-w-40">
      <div aria-hidden className={`flex w-full overflow-hidden rounded-full border border-line bg-sunk ${isLarge ? "h-4" : "h-2"}`}>
        {PARTS.map((part) => <span key={part.key} className={part.tone} style={{ width: `${(100 * part.count(edition)) / all}%` }} />)}
      </div>
      <p className="mt-1 flex flex-wrap gap-x-3 text-sm text-soft tabular-nums">
        <span>{t("intended", { count: edition.intendedUrlCount })}</span>
        {PARTS.filter((part) => part.count(edition) > 0).map((part) => <span key={part.key} className="inline-flex items-center gap-1"><span aria-hidden className={`inline-block size-2 rounded-full ${part.tone}`} />{count(part.count(edition))} {t(`part.${part.key}`, { count: part.count(edition) })}</span>)}
      </p>
    </div>
  );
}

/** Whether an edition can be searched and researched. */
export function EditionTag({ edition }: { edition: Edition }) {
  const tone: Tone = edition.researchReady ? "good" : edition.searchReady ? "accent" : edition.needsReviewShardCount ? "warn" : "plain";
  return <Tag tone={tone}>{t.of("status", edition.status)}</Tag>;
}
