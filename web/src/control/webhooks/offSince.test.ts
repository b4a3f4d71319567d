import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { OffSince } from "./OffSince";

const shown = (reason: string | null) => renderToStaticMarkup(createElement(OffSince, { reason, at: "2026-11-19T10:00:00Z" })).replace(/<\/?time[^>]*>/g, "");

test("a webhook that a person disabled says so", () => {
  expect(shown("by hand")).toMatch(/^Disabled by an administrator, since 19 Nov/);
  expect(shown(null)).toBe(shown("by hand"));
});

test("a reason of the server stands alone and claims no failures", () => {
  expect(shown("it answered 410: the receiver is gone for good")).toMatch(/^Since 19 Nov.* UTC: <span lang="en">it answered 410: the receiver is gone for good<\/span>$/);
});
