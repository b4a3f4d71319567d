import { useState } from "react";
import { api } from "@/api/client";
import { ApiProblem } from "@/api/problem";
import { endSession } from "@/api/session";
import { useWords } from "@/language/LanguageContext";
import { forgetWindow } from "./kept";

/** DELETE /api/session, then the first page: what was shown belongs to the one who left. */
export function SignOut({ className }: { className: string }) {
  const { t } = useWords();
  const [state, be] = useState<"in" | "leaving" | "still in">("in");
  const signOut = async () => {
    be("leaving");
    // A second time, for the first may have shown the token of a session that was taken up anew in another tab.
    if (!(await isEnded()) && !(await isEnded())) {
      be("still in");
      return;
    }
    forgetWindow();
    endSession();
    window.location.assign("/");
  };
  return (
    <>
      <button type="button" disabled={state === "leaving"} onClick={() => void signOut()} className={className}>{t("app.signOut")}</button>
      {state === "still in" && <span role="alert" className="px-3 text-sm text-bad">{t("app.stillSignedIn")}</span>}
    </>
  );
}

/** Whether nobody is signed in any more: it was ended now, or had been before. */
async function isEnded(): Promise<boolean> {
  try {
    await api.DELETE("/api/session");
    return true;
  } catch (problem) {
    return problem instanceof ApiProblem && problem.status === 401;
  }
}
