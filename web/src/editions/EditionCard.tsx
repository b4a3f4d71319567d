import { Link } from "@tanstack/react-router";
import { Card } from "@/design/Card";
import { Tag, type Tone } from "@/design/Tag";
import { useWords } from "@/language/LanguageContext";
import type { EditionListed } from "./useEditions";

const TONES: Record<string, Tone> = { research_ready: "good", search_ready: "accent", needs_review: "warn" };
const KNOWN = ["planned", "in_progress", "needs_review", "search_ready", "research_ready"] as const;

export function StatusTag({ status }: { status: string }) {
  const { t } = useWords();
  const known = KNOWN.find((one) => one === status);
  return <Tag tone={TONES[status] ?? "plain"}>{known ? t(`edition.${known}`) : status}</Tag>;
}

/** One edition: whose it is, how far it is, and how much was kept. */
export function EditionCard({ edition, isNamed = true }: { edition: EditionListed; isNamed?: boolean }) {
  const { t, number, language } = useWords();
  const share = edition.intendedUrlCount > 0 ? edition.capturedUrlCount / edition.intendedUrlCount : 0;
  const name = isNamed ? t("editions.one", { source: edition.sourceName, year: String(edition.year) }) : String(edition.year);
  return (
    <Card title={<Link to="/editions/$source/$year" params={{ source: edition.sourceCode, year: String(edition.year) }} className="[overflow-wrap:anywhere]">{name}</Link>} className="h-full">
      <p className="flex flex-wrap gap-2"><StatusTag status={edition.status} />{edition.frozenAt && <Tag>{t("editions.frozen")}</Tag>}</p>
      {edition.generatedAt ? (
        <>
          <p className="mt-3 font-serif text-xl">{t("editions.captured", { share: new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 1 }).format(share) })}</p>
          <svg aria-hidden viewBox="0 0 100 6" preserveAspectRatio="none" className="my-2 h-2 w-full"><rect width="100" height="6" className="fill-line" /><rect width={share * 100} height="6" className="fill-accent" /></svg>
          <p className="text-sm text-soft">{t("editions.of", { captured: number(edition.capturedUrlCount), intended: number(edition.intendedUrlCount) })}</p>
        </>
      ) : <p className="mt-3 text-soft">{t("editions.notCounted")}</p>}
    </Card>
  );
}
