import { ApiProblem, mayPass } from "@/api/problem";
import { Button } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";

/** What went wrong, what to do now, and an id to ask about. What is no answer of the server is the network's fault, or `isPage` the page's own. */
export function Problem({ problem, onAgain, isPage = false }: { problem: unknown; onAgain?: () => void; isPage?: boolean }) {
  const { t } = useWords();
  const told = problem instanceof ApiProblem ? problem : null;
  return (
    <Notice tone="bad" title={told ? <span lang="en">{told.message}</span> : t("problem.title")} actions={onAgain && (mayPass(problem) || told?.retryAfter) && <Button onClick={onAgain}>{t("problem.again")}</Button>}>
      {told ? <p lang="en">{told.detail}</p> : <p>{t(isPage ? "problem.page" : "problem.network")}</p>}
      {told?.retryAfter && !told.detail.includes(`${told.retryAfter} s`) && <p>{t("problem.wait", { seconds: told.retryAfter })}</p>}
      {told?.requestId && <p className="mt-1 font-mono text-xs">{t("problem.request", { id: told.requestId })}</p>}
    </Notice>
  );
}
