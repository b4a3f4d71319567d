import { readdirSync, readFileSync } from "node:fs";
import ts from "typescript";
import { expect, test } from "vitest";

/** Parts of the application in which every sentence comes from a catalogue; a part joins the list when it is translated. */
const TRANSLATED = ["app", "home", "search", "page", "view", "changes", "compare", "sources", "editions", "control/start", "control/overview", "control/jobs", "control/charts", "control/live", "control/page", "control/sources", "control/executions", "control/domains", "control/frontier", "control/explain", "control/scheduler", "control/takedowns"];
const SAID = new Set(["label", "title", "caption", "hint", "placeholder", "aria-label", "note", "alt"]);
/** Names, and what a person types as it stands. */
const KEPT = /^(Holdfast|API|robots\.txt|\/robots\.txt|(https:\/\/)?(www\.)?example\.org(\/\w*)?|https:\/\/|holdfast [\w-]+)$/;

/** The texts of a file that people read and that no catalogue has. */
function literals(path: string, text: string): string[] {
  const found: string[] = [];
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const isText = (said: string) => /[A-Za-z]{2}/.test(said) && !KEPT.test(said.trim());
  function visit(node: ts.Node): void {
    if (ts.isJsxText(node) && isText(node.text)) found.push(`${path}: ${node.text.trim()}`);
    const named = ts.isJsxAttribute(node) ? node.name.getText() : ts.isPropertyAssignment(node) && node.name.getText() === "head" ? "label" : "";
    const value = ts.isJsxAttribute(node) || ts.isPropertyAssignment(node) ? node.initializer : undefined;
    if (SAID.has(named) && value && ts.isStringLiteral(value) && isText(value.text)) found.push(`${path}: ${value.text}`);
    ts.forEachChild(node, visit);
  }
  visit(file);
  return found;
}

const sources = new URL("..", import.meta.url);

test.each(TRANSLATED)("%s says nothing outside the catalogues", (folder) => {
  const files = readdirSync(new URL(`${folder}/`, sources), { encoding: "utf8", recursive: true }).filter((path) => path.endsWith(".tsx"));
  expect(files.flatMap((path) => literals(`${folder}/${path}`, readFileSync(new URL(`${folder}/${path}`, sources), "utf8")))).toEqual([]);
});

test("texts and labels are found, names and codes are not", () => {
  const text = `<p title="A title" className="no text">Some words {t("key")} <code>holdfast serve</code></p>; const column = { head: "Column" };`;
  expect(literals("x", text)).toEqual(["x: A title", "x: Some words", "x: Column"]);
});
