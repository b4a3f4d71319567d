import { readdirSync, readFileSync } from "node:fs";
import ts from "typescript";
import { expect, test } from "vitest";

/** Attributes and properties whose text people read or hear. */
const SAID = new Set(["label", "title", "caption", "hint", "placeholder", "aria-label", "note", "alt", "head", "none", "action", "reason", "text", "empty"]);
/** Names, and what a person types as it stands. */
const KEPT = /^(Holdfast|API|Etc\/UTC|Tab|Shift|Escape|Enter|Home|End|Space|Arrow(Up|Down|Left|Right)|Page(Up|Down)|robots\.txt|\/robots\.txt|(https:\/\/)?(www\.)?example\.org(\/\w*)?|https:\/\/|holdfast [\w-]+|YAML|ms|full|[KMGTP]o|Holdfast ·|English|Français|takedown|user ada|ada@127\.0\.0\.1)$/;
/** Files whose capitalised words are no sentences: names of a standard, keys of a catalogue (typed), words that the server reads. */
const NAMES_ONLY = ["control/overview/statusNames.ts", "control/imports/uploadWire.ts", "view/cite.ts", "app/controlMenu.ts", "control/sources/schedule.ts", "control/start/Progress.tsx"];

/** A sentence, or a word that begins like one; class names and codes begin with small letters. */
const LIKE_A_SENTENCE = /^[A-Z][a-z’']+([ …,.:;?!]|$)/;

/** The texts of a file that people read and that no catalogue has. */
function literals(path: string, text: string): string[] {
  const found: string[] = [];
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true, path.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS);
  const isText = (said: string) => /[A-Za-z]{2}/.test(said) && !KEPT.test(said.trim());
  const add = (said: string) => found.push(`${path}: ${said.trim()}`);
  function visit(node: ts.Node): void {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node) || ts.isThrowStatement(node)) return;
    if (ts.isCallExpression(node) && /^(t|menu|common)$|(\.of|includes|get|startsWith|Event|lazyPage)$/.test(node.expression.getText())) return node.arguments.forEach((one) => { if (!ts.isStringLiteralLike(one)) visit(one); });
    if (ts.isJsxText(node) && isText(node.text)) add(node.text);
    else if ((ts.isStringLiteralLike(node) || ts.isTemplateHead(node)) && isText(node.text)) {
      const holder = node.parent;
      const name = ts.isJsxAttribute(holder) || ts.isPropertyAssignment(holder) ? holder.name.getText().replace(/"/g, "") : "";
      const isCompared = ts.isBinaryExpression(holder) && /==/.test(holder.operatorToken.getText());
      const isKey = ts.isPropertyAssignment(holder) && holder.name === node;
      if (!isCompared && !isKey && (SAID.has(name) || LIKE_A_SENTENCE.test(node.text))) add(node.text);
    }
    ts.forEachChild(node, visit);
  }
  visit(file);
  return found;
}

const sources = new URL("..", import.meta.url);
const isPart = (path: string) => /\.tsx?$/.test(path) && !/\.test\.ts$|\.d\.ts$|^language\/|^api\/schema/.test(path) && !NAMES_ONLY.includes(path);

test("no part of the application says anything outside the catalogues", () => {
  const files = readdirSync(sources, { encoding: "utf8", recursive: true }).filter(isPart);

  expect(files.length).toBeGreaterThan(200);
  expect(files.flatMap((path) => literals(path, readFileSync(new URL(path, sources), "utf8")))).toEqual([]);
}, 60_000);

test("no part of the application writes numbers as English does", () => {
  const files = readdirSync(sources, { encoding: "utf8", recursive: true }).filter(isPart);

  expect(files.filter((path) => /toLocale\w*String\("en/.test(readFileSync(new URL(path, sources), "utf8")))).toEqual([]);
});

test("texts and labels are found, names and codes are not", () => {
  const text = `<p title="A title" className="no text" aria-label="small">Some words {t("Key")} {isBusy ? "Saving…" : \`Remove \${name}\`} <code>holdfast serve</code></p>; const column = { head: "column" }; const is = word === "Other";`;
  expect(literals("x.tsx", text)).toEqual(["x.tsx: A title", "x.tsx: small", "x.tsx: Some words", "x.tsx: Saving…", "x.tsx: Remove", "x.tsx: column"]);
});
