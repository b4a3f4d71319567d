import { ApiProblem } from "@/api/problem";
import { Button } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";

/** What went wrong, what to do now, and an id to ask about. */
export function Problem({ problem, onAgain }: { problem: unknown; onAgain?: () => void }) {
  const { t } = useWords();
  const told = problem instanceof ApiProblem ? problem : null;
  return (
    <Notice tone="bad" title={told ? told.message : t("problem.title")} actions={onAgain && <Button onClick={onAgain}>{t("problem.again")}</Button>}>
      <p>{told ? told.detail : t("problem.network")}</p>
      {told?.retryAfter && <p>{t("problem.wait", { seconds: told.retryAfter })}</p>}
      {told?.requestId && <p className="mt-1 font-mono text-xs">{t("problem.request", { id: told.requestId })}</p>}
    </Notice>
  );
}
