import type { ReactNode } from "react";

/** Names and what they are, one under the other; a null is left out. */
export function Facts({ facts }: { facts: ([string, ReactNode] | null)[] }) {
  return (
    <dl className="grid gap-x-6 gap-y-1.5 sm:grid-cols-[minmax(9rem,auto)_1fr]">
      {facts.map((fact) => fact && (
        <div key={fact[0]} className="contents">
          <dt className="mt-1 text-sm text-soft sm:mt-0 sm:text-base">{fact[0]}</dt>
          <dd className="min-w-0 break-words">{fact[1]}</dd>
        </div>
      ))}
    </dl>
  );
}
