import { expect, test } from "vitest";
import { ApiProblem } from "@/api/problem";
import { codeOf, contentOf, draftOf, EMPTY, problemAt, samplesOf } from "./form";
import type { Source } from "./useSources";

const source = (config: object): Source => ({ id: 3, code: "ex", name: "Example <b>", base_url: "https://ex.example/", description: null, enabled: true, visibility: "members", config, warnings: [], created_at: "", updated_at: "" }) as Source;

test("a form that nobody changed says what the source said, and keeps what it has no box for", () => {
  const before = source({ seeds: ["https://ex.example/"], max_depth: 9, storage: "signals", extract: { main: "main" } });

  const content = contentOf(draftOf(before, null), before) as { config: Record<string, unknown>; visibility: string; code: string };

  expect(content).toMatchObject({ code: "ex", name: "Example <b>", visibility: "members", base_url: "https://ex.example/" });
  expect(content.config).toMatchObject({ seeds: ["https://ex.example/"], max_depth: 9, storage: "signals", extract: { main: "main" } });
  expect(content.config).not.toHaveProperty("delay_s");
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
