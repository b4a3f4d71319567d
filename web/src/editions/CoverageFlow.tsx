import { Link } from "@tanstack/react-router";
import { useWords } from "@/language/LanguageContext";
import type { AskedEdition } from "./asked";
import { bandsOf, outcomesOf, outline, reasonsOf, type Outcome } from "./flow";

const FILLS: Record<Outcome, string> = { captured: "fill-good", failed: "fill-bad", robots: "fill-warn", excluded: "fill-edge", over_limit: "fill-accent", not_reached: "fill-soft" };
const HEIGHT = 240;

/** From what was meant to be kept to what became of it; each part leads to its addresses. */
export function CoverageFlow({ summary, intended, place, asked }: { summary: Record<string, unknown>; intended: number; place: { source: string; year: string }; asked: AskedEdition }) {
  const { t, number } = useWords();
  const bands = bandsOf(outcomesOf(summary), HEIGHT);
  const reasons = reasonsOf(summary);
  return (
    <div className="grid gap-6 lg:grid-cols-[minmax(0,22rem)_1fr]">
      <figure className="min-w-0">
        <svg role="img" aria-label={[`${number(intended)} ${t("edition.intended")}`, ...bands.map((one) => `${number(one.count)} ${t(`outcome.${one.outcome}`, { count: one.count })}`)].join("; ")} viewBox={`0 0 320 ${HEIGHT}`} className="w-full">
          <rect x="0" y="0" width="14" height={HEIGHT} rx="2" className="fill-ink" />
          {bands.map((band) => (
            <g key={band.outcome} className={`${FILLS[band.outcome]} ${asked.outcome && asked.outcome !== band.outcome ? "opacity-40" : ""}`}>
              <path d={outline(band, 14, 300)} className="opacity-35" />
              <rect x="300" y={band.right} width="20" height={band.height} rx="2" />
            </g>
          ))}
        </svg>
        <figcaption className="mt-1 text-sm text-soft">{number(intended)} {t("edition.intended")}</figcaption>
      </figure>
      <ul className="space-y-3">
        {bands.map((band) => (
          <li key={band.outcome}>
            <Part place={place} ask={{ outcome: band.outcome }} isChosen={asked.outcome === band.outcome && !asked.reason}>
              <svg aria-hidden viewBox="0 0 10 10" className={`size-3 shrink-0 ${FILLS[band.outcome]}`}><rect width="10" height="10" rx="2" /></svg>
              <span className="font-semibold">{t(`outcome.${band.outcome}`, { count: band.count })}</span>
              <Count count={band.count} share={band.share} />
            </Part>
            <ul className="ml-5 border-l border-line pl-2">
              {reasons.filter((one) => one.outcome === band.outcome).slice(0, 8).map((one) => (
                <li key={one.reason}>
                  <Part place={place} ask={{ outcome: band.outcome, reason: one.reason }} isChosen={asked.outcome === band.outcome && asked.reason === one.reason}>
                    <code className="min-w-0 text-sm break-all">{one.reason}</code>
                    <Count count={one.count} share={one.count / Math.max(1, intended)} />
                  </Part>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Count({ count, share }: { count: number; share: number }) {
  const { number, language } = useWords();
  return <span className="ml-auto text-sm whitespace-nowrap text-soft tabular-nums">{number(count)} · {new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 1 }).format(share)}</span>;
}

function Part({ place, ask, isChosen, children }: { place: { source: string; year: string }; ask: AskedEdition; isChosen: boolean; children: React.ReactNode }) {
  return <Link to="/editions/$source/$year" params={place} search={isChosen ? {} : ask} replace resetScroll={false} activeOptions={{ exact: true }} aria-current={isChosen ? "true" : undefined} className="flex min-h-8 items-center gap-2 rounded-part px-2 text-ink no-underline hover:bg-sunk aria-[current]:bg-wash">{children}</Link>;
}
