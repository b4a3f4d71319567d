import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { domainRoute } from "@/app/careRoutes";
import type { Deed } from "@/control/page/Done";
import { Moment } from "@/control/live/Moment";
import { robotsText } from "@/control/executions/outcomes";
import { sentence } from "@/control/page/words";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { readAskedRobots } from "./asked";
import { robotsLines } from "./robotsLines";
import { useRefreshRobots, useRobots } from "./useDomains";
import { t } from "@/language/control/domains";
import { withParts } from "@/language/room";

/** The robots.txt as crawls have read it; for a typed address the line that decides is lit. */
export function RobotsCard({ domain, onDone }: { domain: string; onDone: (deed: Deed) => void }) {
  const { url } = readAskedRobots({ ...domainRoute.useSearch() });
  const navigate = useNavigate();
  const { data, error } = useRobots(domain, url);
  const refresh = useRefreshRobots(domain);
  const [written, write] = useState(url ?? "");
  const ask = (asked: string) => void navigate({ to: "/control/domains/$domain", params: { domain }, search: asked ? { url: asked } : {}, replace: true, resetScroll: false });
  return (
    <Card title="robots.txt" actions={
      <Operate><Button disabled={refresh.isPending} onClick={() => refresh.mutate(undefined, { onSuccess: () => onDone({ title: t("robotsAgain"), text: t("robotsAgainHow") }) })}>{refresh.isPending ? t("saving") : t("fetchAgain")}</Button></Operate>
    }>
      <form className="mb-4 flex flex-wrap items-end gap-2" onSubmit={(event) => {
        event.preventDefault();
        const typed = written.trim();
        ask(typed.startsWith("/") ? `${data?.origins[0]?.origin ?? `https://${domain}`}${typed}` : typed);
      }}>
        <div className="min-w-60 grow"><TextField label={t("mayWe")} value={written} onChange={(event) => write(event.target.value)} placeholder={`https://${domain}/page`} spellCheck={false} /></div>
        <Button type="submit">{t("whichLine")}</Button>
      </form>
      {error ? <div className="mb-4"><Problem problem={error} /></div> : null}
      {refresh.error ? <div className="mb-4"><Problem problem={refresh.error} /></div> : null}
      {data?.ruling && (
        <div className="mb-4"><Notice tone={data.ruling.allowed ? "good" : "bad"} title={t(data.ruling.allowed ? "allowed" : "notAllowed", { url: data.ruling.url })}>
          {robotsText(data.ruling) === null ? <span lang="en">{sentence(data.ruling.reason)}</span> : sentence(robotsText(data.ruling) ?? "")}
        </Notice></div>
      )}
      {data && (
        <>
          <ul className="mb-3 text-sm text-soft">
            {data.origins.map((origin) => (
              <li key={origin.origin} className="break-words">
                <span className="font-mono">{origin.origin}/robots.txt</span>{withParts(t("originIs", { answer: origin.status ? t("originStatus", { answer: t.of("answer", origin.answer), status: String(origin.status) }) : t.of("answer", origin.answer) }), { read: <Moment at={origin.fetchedAt} />, checked: <Moment at={origin.checkedAt} /> })}{origin.failures > 0 ? t("originFailures", { count: origin.failures }) : ""}
              </li>
            ))}
            {data.crawlDelay !== null && <li>{t("asks", { seconds: data.crawlDelay })}</li>}
            {data.sitemaps.map((sitemap) => <li key={sitemap} className="break-all">{t("sitemap", { url: sitemap })}</li>)}
          </ul>
          {data.robotsTxt === null
            ? <Notice title={data.origins.length ? t("noRules") : t("notRead")}>{data.origins.length ? t("noRulesHow") : t("notReadHow")}</Notice>
            : <RobotsText text={data.robotsTxt} line={data.ruling?.line ?? null} />}
        </>
      )}
    </Card>
  );
}

function RobotsText({ text, line }: { text: string; line: number | null }) {
  const lit = useRef<HTMLLIElement>(null);
  const { lines, all } = robotsLines(text, line);
  useEffect(() => { lit.current?.scrollIntoView({ block: "nearest" }); }, [line]);
  return (
    <>
      <ol tabIndex={0} aria-label={t("lineByLine")} className="max-h-96 overflow-auto rounded-part border border-line bg-sunk py-2 font-mono text-sm">
        {lines.map((one) => (
          <li key={one.number} ref={one.isDeciding ? lit : undefined} aria-current={one.isDeciding ? "true" : undefined} className={`grid grid-cols-[3.5rem_1fr] ${one.isDeciding ? "border-l-4 border-accent bg-mark font-semibold" : "border-l-4 border-transparent"}`}>
            <span aria-hidden className="pr-3 text-right text-soft select-none">{one.number}</span>
            <span className="min-w-0 pr-2 break-all whitespace-pre-wrap">{one.text}{one.isDeciding && <span className="font-sans font-normal"> {t("decides")}</span>}</span>
          </li>
        ))}
      </ol>
      {all > lines.length && <p className="mt-1 text-sm text-soft">{t("linesOf", { from: lines[0]?.number ?? 0, to: lines.at(-1)?.number ?? 0, all })}</p>}
    </>
  );
}
