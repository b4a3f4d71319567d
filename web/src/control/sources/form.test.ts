import { expect, test } from "vitest";
import { ApiProblem } from "@/api/problem";
import { problemAt } from "./fields";
import { changesOf, contentOf, draftOf, EMPTY, labelOf, mergedDraft, readDraft, readEdit } from "./form";
import type { Source } from "./useSources";

const source = (config: object): Source => ({ id: 3, code: "ex", name: "Example <b>", base_url: "https://ex.example/", description: null, enabled: true, visibility: "members", schedule: "weekly on Friday at 03:00 UTC", has_run: true, config, warnings: [], created_at: "", updated_at: "" }) as Source;

test("a form that nobody changed says what the source said, and keeps what it has no box for", () => {
  const before = source({ seeds: ["https://ex.example/"], max_depth: 9, storage: "signals", extract: { main: "main" } });

  const content = contentOf(draftOf(before), before) as { config: Record<string, unknown> };

  expect(content).toMatchObject({ code: "ex", name: "Example <b>", visibility: "members", schedule: "weekly on Friday at 03:00 UTC", base_url: "https://ex.example/" });
  expect(content.config).toMatchObject({ seeds: ["https://ex.example/"], max_depth: 9, storage: "signals", extract: { main: "main" } });
  expect(content.config).not.toHaveProperty("delay_s");
});

test("only fields that changed are sent, and null for one that is empty now", () => {
  const before = source({ seeds: ["https://ex.example/"], max_depth: 9 });
  const draft = { ...draftOf(before), maxDepth: "", maxPages: "78" };

  expect(changesOf(contentOf(draft, before), contentOf(draftOf(before), before))).toEqual({ config: { max_depth: null, max_pages: 78 } });
});

test("what somebody is writing stays when the server has something new", () => {
  const before = { ...EMPTY, name: "Example", enabled: true };
  const written = { ...before, name: "Example of mine" };
  const now = { ...before, enabled: false, seeds: "https://a.example/" };

  expect(mergedDraft(written, before, now)).toEqual({ ...now, name: "Example of mine" });
  expect(mergedDraft(before, before, now)).toEqual(now);
});

test("seeds are read line by line, each once", () => {
  const content = contentOf({ ...EMPTY, seeds: " https://a.example/ \n\nhttps://a.example/\r\nhttps://b.example/" }) as { config: { seeds: string[] } };

  expect(content.config.seeds).toEqual(["https://a.example/", "https://b.example/"]);
  expect(content).not.toHaveProperty("code");
});

test("a problem stands at its field, as a sentence without the field's name", () => {
  const problem = (field: string) => new ApiProblem(422, "source_refused", "config.include: a ( is not closed", "", "id", field, undefined);

  expect(problemAt(problem("config.include"), "include")).toBe("A ( is not closed.");
  expect(problemAt(problem("config.include[0]"), "include")).toBe("config.include: a ( is not closed.");
  expect(problemAt(problem("config.include"), "seeds")).toBeNull();
  expect(problemAt(null, "seeds")).toBeNull();
  expect([labelOf(problem("config.include[0]")), labelOf(problem("code")), labelOf(problem("owner")), labelOf(null)]).toEqual(["Also include", "ID", null, null]);
});

test("what was written down is read again only if it is a whole form of today", () => {
  const begun = { ...EMPTY, seeds: "https://ex.example/\n", name: "<i>Example</i>" };
  expect(readDraft(JSON.stringify(begun))).toEqual(begun);
  for (const none of [null, "", "null", "[]", "7", "{", JSON.stringify({ seeds: "https://ex.example/" }), JSON.stringify({ ...EMPTY, enabled: "yes" })]) expect(readDraft(none)).toBeNull();
});

test("changes that were begun are read back with what they began from, and nothing else is taken for them", () => {
  const edit = { draft: { ...EMPTY, name: "Another" }, before: EMPTY };
  expect(readEdit(JSON.stringify(edit))).toEqual(edit);
  for (const none of [null, "{", "7", "{}", JSON.stringify({ draft: EMPTY }), JSON.stringify({ draft: EMPTY, before: { seeds: 3 } })]) expect(readEdit(none)).toBeNull();
});
