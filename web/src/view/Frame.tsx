import { useEffect, useRef } from "react";
import { buttonClass } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import { digits } from "@/page/calendar";
import { wholeDigits } from "./asked";
import { isOfOneSite, isSameAddress, readTold } from "./messages";
import { askResolved, type CaptureView } from "./useCapture";

type Go = (url: string, at: string, isReplaced: boolean) => void;

/** The archived page, from the replay host, without an origin and without any power over this page. */
export function Frame({ view, place, onGo }: { view: CaptureView; place: string; onGo: Go }) {
  const { t } = useWords();
  const frame = useRef<HTMLIFrameElement>(null);
  useFollow(frame, view, place, onGo);
  // Browsers show no PDF inside a sandbox.
  if (view.mimeType === "application/pdf") {
    return <div className="mx-auto w-full max-w-3xl px-4 py-8"><Notice title={t("view.pdf")} actions={<a href={view.rawUrl} target="_blank" rel="noreferrer" className={buttonClass("main")}>{t("view.openFile")}</a>}>{t("view.pdfHow")}</Notice></div>;
  }
  return <iframe key={view.snapshotId} ref={frame} src={view.frameUrl} title={t("view.frame", { url: view.url })} sandbox="allow-scripts allow-forms allow-downloads" referrerPolicy="no-referrer" className="w-full grow border-0 bg-white" />;
}

/**
 * The page as ReplayWeb.page shows it: a program of the replay host with an origin of its own, which is not this one. It
 * cannot be moved along with: what it shows is between it and the reader.
 */
export function RendererFrame({ view, src }: { view: CaptureView; src: string }) {
  const { t } = useWords();
  // Its worker is a stranger's in a page of another site, and browsers keep that from working.
  if (!isOfOneSite(location.hostname, new URL(src).hostname)) {
    return <div className="mx-auto w-full max-w-3xl px-4 py-8"><Notice title={t("view.ownWindow")} actions={<a href={src} target="_blank" rel="noreferrer" className={buttonClass("main")}>{t("view.openWindow")}</a>}>{t("view.ownWindowHow")}</Notice></div>;
  }
  return (
    <>
      {/* Two names may look like one owner's and be two sites (`.co.uk`): then only the window works. */}
      <p className="px-4 py-1 text-sm"><a href={src} target="_blank" rel="noreferrer">{t("view.openWindow")}</a></p>
      <iframe key={view.snapshotId} src={src} title={t("view.frame", { url: view.url })} sandbox="allow-scripts allow-same-origin allow-forms allow-downloads" referrerPolicy="no-referrer" className="w-full grow border-0 bg-white" />
    </>
  );
}

/** Move along when a link was followed in the frame. What the frame says is looked up, and shown from the archive. */
function useFollow(frame: React.RefObject<HTMLIFrameElement | null>, view: CaptureView, place: string, onGo: Go) {
  const followed = useRef("");
  useEffect(() => {
    let isLeft = false;
    async function heard(event: MessageEvent) {
      const told = readTold(event, frame.current?.contentWindow);
      if (!told) return;
      if (told.what === "go") {
        followed.current = "";
        // A page that goes on by itself leaves no trail of its own: the way back is the reader's.
        onGo(told.url, told.digits, navigator.userActivation?.isActive === false);
        return;
      }
      if (isSameAddress(told.url, view.url) && told.digits === digits(view.captureTimestamp)) return;
      // A page whose capture the archive would not choose itself is told of once: no going round in circles.
      const there = `${told.digits} ${told.url}`;
      if (followed.current === there) return;
      followed.current = there;
      const found = await askResolved(told.url, wholeDigits(told.digits)).catch(() => null);
      // Who has gone elsewhere meanwhile is not called back.
      if (!isLeft && found?.found && found.snapshotId !== view.snapshotId) onGo(told.url, told.digits, true);
    }
    const listen = (event: MessageEvent) => void heard(event);
    addEventListener("message", listen);
    return () => {
      isLeft = true;
      removeEventListener("message", listen);
    };
    // The place in the address bar changes before its capture has come: what was looked up for the last one is over then.
  }, [frame, view, place, onGo]);
}
