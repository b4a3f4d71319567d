import { createRootRoute, Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { buttonClass } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import { PartMissing, reloadOnce } from "./lazyPage";
import { Problem } from "./Problem";
import { Shell } from "./Shell";

function Missing() {
  const { t } = useWords();
  useEffect(() => { document.title = `${t("missing.title")} · Holdfast`; }, [t]);
  return (
    <>
      <h1 className="mb-4 text-2xl">{t("missing.title")}</h1>
      <Notice title={t("missing.text")} actions={<Link to="/" className={buttonClass("main")}>{t("app.name")}</Link>} />
    </>
  );
}

/** What is shown in place of a page that failed. The code of a page that the server no longer has comes with the version that it has now. */
export function PageFailed({ error }: { error: unknown }) {
  const { t } = useWords();
  useEffect(() => {
    document.title = `${t("problem.title")} · Holdfast`;
    if (error instanceof PartMissing) reloadOnce(error.part);
  }, [error, t]);
  return (
    <>
      <h1 className="mb-4 text-2xl">{t("problem.pageTitle")}</h1>
      <Problem problem={error} onAgain={() => location.reload()} isPage />
    </>
  );
}

export const root = createRootRoute({ component: Shell, notFoundComponent: Missing, errorComponent: PageFailed });
