import { Tag, type Tone } from "@/design/Tag";
import type { DomainSummary } from "./useDomains";
import { t } from "@/language/control/domains";

const TONES: Record<DomainSummary["state"], Tone> = { forbidden: "bad", paused: "warn", unreachable: "bad", active: "accent", resting: "plain", ready: "good" };

/** The state of a domain, in the language of the page. */
export function domainWord(state: string): string {
  return t.of("state", state);
}

/** The state of a domain's circuit, in the language of the page. */
export function circuitWord(circuit: string): string {
  return t.of("circuit", circuit);
}

/** What a state of a domain means. */
export function meaningOf(state: DomainSummary["state"]): string {
  return t(`means.${state}`);
}

export function DomainTag({ state }: { state: DomainSummary["state"] }) {
  return <Tag tone={TONES[state]}>{domainWord(state)}</Tag>;
}

export function CircuitTag({ circuit }: { circuit: string }) {
  return circuit === "closed" ? <span className="text-soft">{circuitWord(circuit)}</span> : <Tag tone={circuit === "open" ? "bad" : "warn"}>{circuitWord(circuit)}</Tag>;
}
