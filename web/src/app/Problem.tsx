import { ApiProblem, mayPass } from "@/api/problem";
import { Button } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";

const KINDS = { 401: "problem.kind.401", 403: "problem.kind.403", 404: "problem.kind.404", 409: "problem.kind.409", 410: "problem.kind.404", 429: "problem.kind.429" } as const;

function kindOf(status: number) {
  return KINDS[status as keyof typeof KINDS] ?? (status < 500 ? "problem.kind.400" : "problem.kind.500");
}

/** What went wrong, what to do now, and an id to ask about. What is no answer of the server is the network's fault, or `isPage` the page's own. */
export function Problem({ problem, onAgain, isPage = false }: { problem: unknown; onAgain?: () => void; isPage?: boolean }) {
  const { t, language } = useWords();
  const told = problem instanceof ApiProblem ? problem : null;
  // The server speaks English: other languages say what kind of problem it is, and then what the server said.
  const isForeign = language !== "en";
  return (
    <Notice tone="bad" title={told ? (isForeign ? t(kindOf(told.status)) : told.message) : t("problem.title")} actions={onAgain && (mayPass(problem) || told?.retryAfter) && <Button onClick={onAgain}>{t("problem.again")}</Button>}>
      {told ? <p lang="en">{isForeign && told.message} {told.detail}</p> : <p>{t(isPage ? "problem.page" : "problem.network")}</p>}
      {told?.retryAfter && !told.detail.includes(`${told.retryAfter} s`) && <p>{t("problem.wait", { seconds: told.retryAfter })}</p>}
      {told?.requestId && <p className="mt-1 font-mono text-xs">{t("problem.request", { id: told.requestId })}</p>}
    </Notice>
  );
}
