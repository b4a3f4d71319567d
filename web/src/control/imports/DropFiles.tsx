import { Upload } from "lucide-react";
import { useId, useState, type DragEvent } from "react";
import { bytes } from "@/control/charts/format";
import { Button } from "@/design/Button";
import { SelectField, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { useSourceChoices } from "@/control/sources/useSources";
import { codeOf, isArchiveName, isCode } from "./files";
import { withParts } from "@/language/room";
import { transfers } from "./transfers";
import { t } from "@/language/control/imports";

const NEW = "+";

/** Files are dropped or chosen, a source is named for them, and they are sent. */
export function DropFiles() {
  const id = useId();
  const sources = useSourceChoices();
  const [files, setFiles] = useState<File[]>([]);
  const [empty, setEmpty] = useState<string[]>([]);
  const [isOver, setOver] = useState(false);
  const [source, setSource] = useState("");
  const [code, setCode] = useState("");
  const [name, setName] = useState("");
  const [isStrict, setStrict] = useState(false);
  const isNew = source === NEW || (source === "" && sources?.length === 0);
  const chosen = isNew ? code : source;
  const strange = files.filter((file) => !isArchiveName(file.name));
  const lacks = isNew ? (isCode(code) ? "" : t("giveId")) : source === "" ? t("chooseSource") : "";
  const isReady = files.length > 0 && !lacks;
  function take(found: FileList | null) {
    const added = [...(found ?? [])].filter((file) => file.size > 0);
    setEmpty([...(found ?? [])].filter((file) => file.size === 0).map((file) => file.name));
    if (added.length === 0) return;
    setFiles(added);
    if (!code && added[0]) setCode(codeOf(added[0].name));
  }
  function send() {
    for (const file of files) transfers.add(file, { source: chosen, isStrict, ...(isNew && name.trim() ? { name: name.trim() } : {}) });
    setFiles([]);
  }
  function dropped(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer.files);
  }
  return (
    <form onSubmit={(event) => { event.preventDefault(); if (isReady) send(); }}>
      <div onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={dropped}
        className={`relative rounded-card border-2 border-dashed p-6 text-center focus-within:outline-3 focus-within:outline-accent ${isOver ? "border-accent bg-wash" : "border-edge bg-sunk"}`}>
        <Upload aria-hidden className="mx-auto mb-2 size-7 text-accent" />
        <p className="font-semibold">{withParts(t("orDrop"), { choose: <label htmlFor={id} className="cursor-pointer text-accent underline after:absolute after:inset-0">{t("choose")}</label> })}</p>
        <p className="text-sm text-soft">{t("types")}</p>
        <input id={id} type="file" multiple accept=".warc,.gz,.zst,.wacz,.arc" className="sr-only" onChange={(event) => { take(event.target.files); event.target.value = ""; }} />
      </div>
      {empty.length > 0 && <div className="mt-4"><Notice tone="warn" title={t("empty", { names: empty.join(", ") })}>{t("emptyHow")}</Notice></div>}
      {files.length > 0 && (
        <div className="mt-4 space-y-4">
          <ul aria-label={t("chosen")} className="divide-y divide-line rounded-part border border-line">
            {files.map((file) => (
              <li key={`${file.name}-${file.size}`} className="flex flex-wrap items-center gap-x-4 px-3 py-1.5">
                <span className="min-w-0 grow break-all">{file.name}</span>
                <span className="text-sm text-soft tabular-nums">{bytes(file.size)}</span>
                <Button kind="bare" onClick={() => setFiles(files.filter((one) => one !== file))} aria-label={t("leaveOutOf", { name: file.name })}>{t("leaveOut")}</Button>
              </li>
            ))}
          </ul>
          {strange.length > 0 && <Notice tone="warn" title={t("strange", { names: strange.map((file) => file.name).join(", ") })}>{t("strangeHow")}</Notice>}
          <div className="grid gap-4 sm:grid-cols-3">
            <SelectField label={t("source")} value={isNew ? NEW : source} onChange={(event) => setSource(event.target.value)} hint={t("sourceHow")}>
              {!isNew && <option value="">{t("pick")}</option>}
              {sources?.map((one) => <option key={one.code} value={one.code}>{one.name}</option>)}
              <option value={NEW}>{t("newSource")}</option>
            </SelectField>
            {isNew && <TextField label={t("newId")} value={code} maxLength={40} spellCheck={false} onChange={(event) => setCode(event.target.value)} hint={t("idHow")} problem={code && !isCode(code) ? t("idWrong") : null} />}
            {isNew && <TextField label={t("name")} value={name} maxLength={200} onChange={(event) => setName(event.target.value)} hint={t("nameHow")} />}
          </div>
          <label className="flex min-h-6 items-start gap-2"><input type="checkbox" className="mt-1 size-4 accent-accent" checked={isStrict} onChange={(event) => setStrict(event.target.checked)} /><span>{t("strict")} <span className="text-soft">{t("strictHow")}</span></span></label>
          {lacks && <p id={`${id}-lacks`} className="text-soft">{lacks}</p>}
          <Button type="submit" kind="main" disabled={!isReady} aria-describedby={lacks ? `${id}-lacks` : undefined}>{t("send", { count: files.length, size: bytes(files.reduce((sum, file) => sum + file.size, 0)) })}</Button>
        </div>
      )}
    </form>
  );
}
