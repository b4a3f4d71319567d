import { Tag } from "@/design/Tag";
import { scopeSaid, scopesSaid, stepSaid } from "./said";
import type { Explanation } from "./useExplanation";
import { t } from "@/language/control/explain";

/** How an address becomes the one spelling of its page, step by step. */
export function SpellingSteps({ address }: { address: Explanation["address"] }) {
  return (
    <>
      <ol className="space-y-1.5">
        <li className="grid gap-x-4 sm:grid-cols-[16rem_1fr]"><span className="text-soft">{t("given")}</span><code className="text-sm break-all">{address.given}</code></li>
        {address.steps.map((step, at) => <li key={at} className="grid gap-x-4 sm:grid-cols-[16rem_1fr]"><span className="text-soft">{stepSaid(step)}</span><code className="text-sm break-all">{step.after}</code></li>)}
        <li className="grid gap-x-4 sm:grid-cols-[16rem_1fr]"><span className="font-semibold">{t("identity")}</span><code className="text-sm font-semibold break-all">{address.normalised}</code></li>
      </ol>
      <details className="mt-3 text-sm">
        <summary className="min-h-6 font-semibold text-accent">{t("keys")}</summary>
        <dl className="mt-1 grid gap-x-4 sm:grid-cols-[16rem_1fr]">
          {([["fetch", address.fetch], ["surt", address.key], ["hash", address.urlHash], ["group", address.group], ["origin", address.origin], ["priority", address.priority?.toString()]] as const).map(([name, value]) => value && (
            <div key={name} className="contents"><dt className="text-soft">{t(`key.${name}`)}</dt><dd className="font-mono break-all">{value}</dd></div>
          ))}
        </dl>
      </details>
    </>
  );
}

/** Which sources have the address in scope, by which rule, and why the others have not. */
export function Scopes({ sources }: { sources: Explanation["sources"] }) {
  return (
    <>
      <p className="break-words">{scopesSaid(sources)}</p>
      {sources.inScope.length > 0 && <ul className="mt-2 space-y-1">{sources.inScope.map((one) => <Scope key={one.source} one={one} />)}</ul>}
      {sources.outOfScopeCount > 0 && (
        <details className="mt-2">
          <summary className="min-h-6 font-semibold text-accent">{t("notIn", { count: sources.outOfScopeCount })}</summary>
          <ul className="mt-1 space-y-1">{sources.outOfScope.map((one) => <Scope key={one.source} one={one} />)}</ul>
        </details>
      )}
    </>
  );
}

function Scope({ one }: { one: Explanation["sources"]["inScope"][number] }) {
  return (
    <li className="break-words">
      <Tag tone={one.inScope ? "good" : one.inScope === null ? "warn" : "plain"}>{one.source}</Tag> {scopeSaid(one)}
      {one.rule && <code className="ml-1 text-sm break-all text-soft">{one.rule}</code>}
      {!one.enabled && <span className="text-warn"> {t("sourceOff")}</span>}
    </li>
  );
}
