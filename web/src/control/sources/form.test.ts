import { expect, test } from "vitest";
import { ApiProblem } from "@/api/problem";
import { codeOf, contentOf, draftOf, EMPTY, isNewPlan, mergedDraft, problemAt, readDraft, readEdit, samplesOf } from "./form";
import type { Source } from "./useSources";

const source = (config: object): Source => ({ id: 3, code: "ex", name: "Example <b>", base_url: "https://ex.example/", description: null, enabled: true, visibility: "members", config, warnings: [], created_at: "", updated_at: "" }) as Source;

test("a form that nobody changed says what the source said, and keeps what it has no box for", () => {
  const before = source({ seeds: ["https://ex.example/"], max_depth: 9, storage: "signals", extract: { main: "main" } });

  const content = contentOf(draftOf(before, null), before) as { config: Record<string, unknown>; visibility: string; code: string };

  expect(content).toMatchObject({ code: "ex", name: "Example <b>", visibility: "members", base_url: "https://ex.example/" });
  expect(content.config).toMatchObject({ seeds: ["https://ex.example/"], max_depth: 9, storage: "signals", extract: { main: "main" } });
  expect(content.config).not.toHaveProperty("delay_s");
});

test("what somebody is writing stays when the server has something new", () => {
  const before = { ...EMPTY, name: "Example", enabled: true };
  const written = { ...before, name: "Example of mine" };
  const now = { ...before, enabled: false, seeds: "https://a.example/" };

  expect(mergedDraft(written, before, now)).toEqual({ ...now, name: "Example of mine" });
  expect(mergedDraft(before, before, now)).toEqual(now);
});

test("a schedule that was switched off is switched on again, though its interval is the same", () => {
  const plan = { interval_minutes: 6, interval_type: "hours", schedule_enabled: true, adaptive_scheduling: true };
  const off = { ...plan, schedule_enabled: false };

  expect([isNewPlan(plan, undefined), isNewPlan(plan, plan), isNewPlan(plan, off), isNewPlan(off, plan), isNewPlan(off, off), isNewPlan(off, undefined)]).toEqual([true, false, true, true, false, false]);
  expect(isNewPlan({ ...plan, adaptive_scheduling: false }, plan)).toBe(true);
});

test("seeds are read line by line, each once", () => {
  const content = contentOf({ ...EMPTY, seeds: " https://a.example/ \n\nhttps://a.example/\r\nhttps://b.example/" }) as { config: { seeds: string[] }; code: string };

  expect(content.config.seeds).toEqual(["https://a.example/", "https://b.example/"]);
  expect(content.code).toBe("a-example");
});

test("a source without a code is called after its host", () => {
  expect(codeOf("https://www.Very-Long-Name.example.org/x")).toBe("very-long-name-e");
  expect(codeOf("")).toBe("source");
});

test("a problem stands at its field, without the field's name", () => {
  const problem = new ApiProblem(422, "source_refused", "config.include: missing )", "", "id", "config.include[0]", undefined);
  const plain = new ApiProblem(422, "source_refused", "config.include: missing )", "", "id", "config.include", undefined);

  expect(problemAt(plain, "include")).toBe("missing )");
  expect(problemAt(problem, "include")).toBe("config.include: missing )");
  expect(problemAt(plain, "seeds")).toBeNull();
  expect(problemAt(null, "seeds")).toBeNull();
});

test("samples lie below, beside and elsewhere; what is no address has none", () => {
  expect(samplesOf("www.ex.example/docs/a.html")).toEqual([
    "https://www.ex.example/docs/a.html", "https://www.ex.example/docs/below/page.html", "https://www.ex.example/elsewhere/page.html", "https://other.ex.example/page.html", "https://another-site.example/page.html",
  ]);
  expect(samplesOf("http://[")).toEqual([]);
  expect(samplesOf("")).toEqual([]);
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
