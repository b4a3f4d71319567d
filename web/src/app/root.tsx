import { createRootRoute, Link } from "@tanstack/react-router";
import { buttonClass } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import { Problem } from "./Problem";
import { Shell } from "./Shell";

function Missing() {
  const { t } = useWords();
  return (
    <>
      <h1 className="sr-only">{t("missing.title")}</h1>
      <Notice title={t("missing.title")} actions={<Link to="/" className={buttonClass("main")}>{t("app.name")}</Link>}>{t("missing.text")}</Notice>
    </>
  );
}

export const root = createRootRoute({ component: Shell, notFoundComponent: Missing, errorComponent: ({ error }) => <Problem problem={error} onAgain={() => location.reload()} isPage /> });
