import { useState } from "react";
import { api } from "@/api/client";
import { endSession } from "@/api/session";
import { useWords } from "@/language/LanguageContext";

/** DELETE /api/session, then the first page: what was shown belongs to the one who left. */
export function SignOut({ className }: { className: string }) {
  const { t } = useWords();
  const [isLeaving, leave] = useState(false);
  const signOut = async () => {
    leave(true);
    await api.DELETE("/api/session").catch(() => undefined);
    endSession();
    window.location.assign("/");
  };
  return <button type="button" disabled={isLeaving} onClick={() => void signOut()} className={className}>{t("app.signOut")}</button>;
}
