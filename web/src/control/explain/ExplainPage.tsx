import { Link, useNavigate } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { Problem } from "@/app/Problem";
import { explainRoute } from "@/app/careRoutes";
import { Facts } from "@/control/page/Facts";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { Button } from "@/design/Button";
import { TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { domainSaid, robotsSaid } from "./said";
import { readAskedExplain } from "./asked";
import { Attempts, Captures } from "./History";
import { SpellingSteps, Scopes } from "./Spelling";
import { Turn } from "./Turn";
import { useExplanation, type Explanation } from "./useExplanation";
import { verdicts, type Verdict } from "./verdict";
import { t } from "@/language/control/explain";
import { withParts } from "@/language/room";

/** Why was this not crawled? Everything that is known of an address, station by station, on one page. */
export function ExplainPage() {
  const { url } = readAskedExplain({ ...explainRoute.useSearch() });
  const navigate = useNavigate();
  const [written, write] = useState(url ?? "");
  const [shownUrl, setShownUrl] = useState(url);
  const found = useExplanation(url);
  if (url !== shownUrl) {
    setShownUrl(url);
    write(url ?? "");
  }
  return (
    <>
      <PageHead title={t("explain")}>{t("intro")}</PageHead>
      <form role="search" className="mb-6 flex flex-wrap items-end gap-2" onSubmit={(event) => {
        event.preventDefault();
        if (written.trim()) void navigate({ to: "/control/explain", search: { url: written.trim() } });
      }}>
        <div className="min-w-60 grow"><TextField label={t("address")} value={written} onChange={(event) => write(event.target.value)} placeholder="https://www.example.org/page" spellCheck={false} /></div>
        <Button type="submit" kind="main">{t("explain")}</Button>
      </form>
      {found.error ? <Problem problem={found.error} onAgain={() => void found.refetch()} /> : null}
      {!url && <Notice title={t("type")}>{t("typeHow")}</Notice>}
      {url && !found.first && !found.error && <p role="status" className="min-h-96 text-soft">{t("loading")}</p>}
      {found.first && <Explained found={found.first} list={found} />}
    </>
  );
}

function Explained({ found, list }: { found: Explanation; list: ReturnType<typeof useExplanation> }) {
  const said = verdicts(found);
  const { address, robots, domain, outlook } = found;
  return (
    <div aria-busy={list.isFetching}>
      <section aria-label={t("answer")} className="mb-6 rounded-card border border-accent bg-wash p-4 sm:p-5">
        <p className="text-sm break-all">{address.normalised}</p>
        <p className="mt-1 font-serif text-xl break-words"><Turn turn={outlook.next} /></p>
        {outlook.all.length > 1 && <ul className="mt-2 list-disc pl-5 text-sm">{outlook.all.slice(1).map((turn, at) => <li key={at} className="break-words"><Turn turn={turn} /></li>)}</ul>}
        <p className="mt-2 text-sm">{withParts(t("lookedUp"), { time: <Moment at={found.at} /> })}</p>
      </section>
      <ol className="space-y-4">
        <Station title={t("spelled")} verdict={said.address}>
          {address.refused && <p className="mb-2 font-semibold break-words"><span lang="en">{address.refused}</span></p>}
          <SpellingSteps address={address} />
        </Station>
        <Station title={t("whichSource")} verdict={said.scope}><Scopes sources={found.sources} /></Station>
        <Station title={t("robotsSays")} verdict={said.robots}>
          <p className="break-words">{robotsSaid(robots)}</p>
          {robots.rule && <p className="mt-2 rounded-part border-l-4 border-accent bg-mark px-3 py-1.5 font-mono text-sm break-all">{robots.line ? `${robots.line}: ` : ""}{robots.rule}</p>}
          {domain?.known && <p className="mt-2"><Link to="/control/domains/$domain" params={{ domain: domain.name }} search={{ url: address.fetch ?? address.normalised }}>{robots.line ? t("wholeLit") : t("whole")}</Link></p>}
        </Station>
        {(domain || !address.domain) && <Station title={t("domainStands")} verdict={said.domain}>
          {domain ? (
            <>
              <p className="break-words">{domainSaid(domain)}</p>
              <div className="mt-2"><Facts facts={[
                [t("domain"), domain.known ? <Link key="domain" to="/control/domains/$domain" params={{ domain: domain.name }} className="break-all">{domain.name}</Link> : domain.name],
                [t("nextRequest"), <Moment key="next" at={domain.nextAllowedAt} none={t("atOnce")} />],
                domain.holder ? [t("holder"), `${t("process", { name: domain.holder.owner })}${domain.holder.host ? ` ${t("onHost", { host: domain.holder.host })}` : ""}${domain.holder.execution ? `, ${t("inRun", { id: String(domain.holder.execution) })}` : ""}`] : null,
              ]} /></div>
            </>
          ) : <p>{t("noDomain")}</p>}
        </Station>}
        <Station title={t("tried")} verdict={{ tone: "plain", word: list.attempts.length ? t(list.hasNextPage ? "moreAttempts" : "attempts", { count: list.attempts.length }) : t("never") }}><Attempts list={list} /></Station>
        <Station title={t("kept")} verdict={{ tone: found.snapshots.count ? "good" : "plain", word: found.snapshots.count ? t("captured") : t("nothing") }}><Captures found={found} /></Station>
        <Station title={t("next")} verdict={said.outlook}><p className="break-words"><Turn turn={outlook.next} /></p>{outlook.next.at && <p className="text-soft">{withParts(t("notBeforeIs"), { time: <Moment at={outlook.next.at} /> })}</p>}</Station>
      </ol>
    </div>
  );
}

function Station({ title, verdict, children }: { title: string; verdict: Verdict; children: ReactNode }) {
  return (
    <li className="rounded-card border border-line bg-sheet p-4 shadow-card sm:p-5">
      <div className="mb-2 flex flex-wrap items-center gap-3">
        <h2 className="text-lg">{title}</h2>
        <Tag tone={verdict.tone}>{verdict.word}</Tag>
      </div>
      {children}
    </li>
  );
}
