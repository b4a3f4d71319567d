import { Link } from "@tanstack/react-router";
import { Button } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { Tag, type Tone } from "@/design/Tag";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { Meter } from "@/control/page/Meter";
import { Moment } from "@/control/live/Moment";
import { withParts } from "@/language/room";
import { farOf, nameOf, problemsOf, resultOf } from "./told";
import { isOpen, useCancelOperation, useOperations, type Operation, type OperationKind } from "./useOperations";
import { t } from "@/language/control/operations";
import { t as common } from "@/language/control/common";

const TONES: Record<Operation["state"], Tone> = { queued: "plain", running: "accent", done: "good", failed: "bad", cancelled: "warn" };

/** Long work: how far it is, what came of it, and the way to leave it off. */
export function OperationRow({ operation }: { operation: Operation }) {
  const cancel = useCancelOperation();
  const problems = problemsOf(operation.result as Record<string, unknown>);
  return (
    <article aria-label={`${nameOf(operation.kind)} ${operation.id}`} className="py-3">
      <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        <Tag tone={TONES[operation.state]}>{t.of("state", isOpen(operation) && operation.pausedAt ? "paused" : operation.state)}</Tag>
        <span className="min-w-0 grow font-semibold break-words">{nameOf(operation.kind)}: {operation.subject}</span>
        <span className="text-sm text-soft">{withParts(t("by", { name: operation.startedBy }), { time: <Moment at={operation.createdAt} /> })}</span>
      </div>
      {isOpen(operation) && (
        <div className="mt-2 flex flex-wrap items-center gap-3">
          <div className="min-w-48 grow"><Meter label={nameOf(operation.kind)} done={operation.progress.done} total={operation.progress.total} text={farOf(operation.progress)} /></div>
          <Operate><Button disabled={operation.isCancelled || cancel.isPending} onClick={() => cancel.mutate(operation.id)}>{operation.isCancelled ? t("cancelling") : common("cancel")}</Button></Operate>
        </div>
      )}
      {cancel.error ? <Problem problem={cancel.error} /> : null}
      {operation.error && <div className="mt-2"><Notice tone="bad" title={<span lang="en">{operation.error}</span>} /></div>}
      {!isOpen(operation) && (
        <p className="mt-1 flex flex-wrap gap-x-4 text-sm text-soft">
          {resultOf(operation.result as Record<string, unknown>).map(([name, value]) => <span key={name} className="break-all">{name}: <span className="text-ink tabular-nums">{value}</span></span>)}
        </p>
      )}
      {operation.kind === "import" && operation.state === "done" && operation.parameters?.source && <p className="mt-1"><Link to="/search" search={{ source: operation.parameters.source }} className="inline-block min-h-6">{t("search", { source: operation.parameters.source })}</Link></p>}
      {problems.length > 0 && (
        <details className="mt-1">
          <summary className="min-h-6 text-sm font-semibold text-bad">{t("problems", { count: problems.length })}</summary>
          <ul lang="en" className="mt-1 max-h-64 overflow-auto font-mono text-sm">{problems.map((line, at) => <li key={at} className="break-all">{line}</li>)}</ul>
        </details>
      )}
    </article>
  );
}

/** The newest operations of some kinds. */
export function OperationList({ kinds, empty }: { kinds: OperationKind[]; empty: string }) {
  const { data, error, refetch } = useOperations(kinds);
  if (error) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (!data) return <p role="status" className="min-h-16 text-soft">{common("loading")}</p>;
  if (data.length === 0) return <p className="text-soft">{empty}</p>;
  return <div className="divide-y divide-line">{data.map((operation) => <OperationRow key={operation.id} operation={operation} />)}</div>;
}
