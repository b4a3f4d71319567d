import { Link } from "@tanstack/react-router";
import { signInPath } from "@/api/session";
import { useMay, useSession } from "@/app/useSession";
import { buttonClass } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";

/** What will appear in an archive that is empty, and for operators the way to fill it. */
export function EmptyArchive() {
  const { t } = useWords();
  const mayAdd = useMay("operate");
  const session = useSession().data;
  const add = <Link to="/control/start" className={buttonClass("main")}>{t("home.emptyAdd")}</Link>;
  const signIn = <a href={signInPath("/")} className={buttonClass("main")}>{t("app.signIn")}</a>;
  return <Notice title={t("home.empty")} actions={mayAdd ? add : session && !session.authenticated ? signIn : undefined}>{t("home.emptyHow")} {session && !session.authenticated ? t("home.emptySignIn") : null}</Notice>;
}
