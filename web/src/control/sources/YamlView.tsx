import { useQueryClient } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useState } from "react";
import { ApiProblem } from "@/api/problem";
import { useDeed } from "@/api/useDeed";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { Button, buttonClass } from "@/design/Button";
import { TextArea } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { importYaml, usePreview, useYaml } from "./useSources";
import { t } from "@/language/control/sources";

/** The same source as a file: of one that is there, or of what the form holds. It is checked, and saved, by the import. */
export function YamlView({ content, code, onSaved }: { content: Record<string, unknown> | null; code: string; onSaved?: () => void }) {
  const drafted = usePreview(content ? { source: content, urls: [] } : null);
  const kept = useYaml(code);
  const text = content ? drafted.data?.yaml : kept.data;
  const error = content ? drafted.error : kept.error;
  if (error) return <Notice tone="warn" title={t("incomplete")}>{error instanceof ApiProblem ? error.message : t("fillIn")}</Notice>;
  if (text === undefined) return <div className="min-h-96" aria-busy />;
  return <Editor text={text} code={code} onSaved={onSaved} />;
}

function Editor({ text, code, onSaved }: { text: string; code: string; onSaved?: (() => void) | undefined }) {
  const [written, write] = useState(text);
  const [before, remember] = useState(text);
  const queries = useQueryClient();
  const check = useDeed({ mutationFn: (file: string) => importYaml(file, true) });
  const save = useDeed({
    mutationFn: (file: string) => importYaml(file, false),
    onSuccess: () => onSaved?.(),
    onSettled: () => Promise.all([["managed"], ["crawl"], ["scheduler"], ["sources"]].map((queryKey) => queries.invalidateQueries({ queryKey }))),
  });
  // What was saved comes back as the server writes it; what somebody is writing stays.
  if (text !== before) {
    remember(text);
    if (written === before || written === save.variables) write(text);
  }
  const problem = check.error ?? save.error;
  const told = problem instanceof ApiProblem ? problem : null;
  const done = save.data ?? check.data;
  return (
    <div className="space-y-4">
      <TextArea label={t("yaml")} hint={t("yamlHint")} rows={22} spellCheck={false} className="font-mono text-sm" value={written} onChange={(event) => { write(event.target.value); check.reset(); save.reset(); }} problem={told?.field ? told.message : null} />
      <div className="flex flex-wrap gap-2">
        <Operate>
          <Button onClick={() => check.mutate(written)} disabled={check.isPending}>{t("checkYaml")}</Button>
          <Button kind="main" onClick={() => save.mutate(written)} disabled={save.isPending || (code !== "" && written === text)}>{t("save")}</Button>
        </Operate>
        <a className={buttonClass("plain")} download={`${code || "source"}.yaml`} href={`data:application/yaml;charset=utf-8,${encodeURIComponent(written)}`}><Download aria-hidden className="size-4" />{t("download")}</a>
      </div>
      {problem && !told?.field ? <Problem problem={problem} /> : null}
      {done && <Notice tone="good" title={save.data ? t("saved") : t("canSave")}>{[[t("new"), done.created], [t("updated"), done.updated], [t("unchanged"), done.unchanged]].filter(([, codes]) => (codes as string[]).length > 0).map(([word, codes]) => `${word as string}: ${(codes as string[]).join(", ")}`).join("; ")}</Notice>}
    </div>
  );
}
