import { Link } from "@tanstack/react-router";
import { useMay } from "@/app/useSession";
import { buttonClass } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";

/** What will appear in an archive that is empty, and for operators the way to fill it. */
export function EmptyArchive() {
  const { t } = useWords();
  const mayAdd = useMay("operate");
  return <Notice title={t("home.empty")} actions={mayAdd ? <Link to="/control/start" className={buttonClass("main")}>{t("home.emptyAdd")}</Link> : undefined}>{t("home.emptyHow")}</Notice>;
}
