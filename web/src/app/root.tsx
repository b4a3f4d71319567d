import { createRootRoute, Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { buttonClass } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
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

export const root = createRootRoute({ component: Shell, notFoundComponent: Missing, errorComponent: ({ error }) => <Problem problem={error} onAgain={() => location.reload()} isPage /> });
