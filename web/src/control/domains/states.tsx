import { Tag, type Tone } from "@/design/Tag";
import type { DomainSummary } from "./useDomains";

const TONES: Record<DomainSummary["state"], Tone> = { forbidden: "bad", paused: "warn", unreachable: "bad", active: "accent", resting: "plain", ready: "good" };

export const MEANS: Record<DomainSummary["state"], string> = {
  forbidden: "An operator forbids it: it is never asked, and what is queued of it ends.",
  paused: "An operator lets it rest: nothing is asked, what is queued stays queued.",
  unreachable: "It did not answer for too long; it is tried again now and then.",
  active: "A process asks it at this moment.",
  resting: "Its delay has not passed yet.",
  ready: "It can be asked at once.",
};

export function DomainTag({ state }: { state: DomainSummary["state"] }) {
  return <Tag tone={TONES[state]}>{state}</Tag>;
}

export function CircuitTag({ circuit }: { circuit: string }) {
  return circuit === "closed" ? <span className="text-soft">closed</span> : <Tag tone={circuit === "open" ? "bad" : "warn"}>{circuit.replace("_", " ")}</Tag>;
}
