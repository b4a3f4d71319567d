import { expect, test } from "vitest";
import { isChosen, switched, toldEvents } from "./events";

test("a group stands for all of its events, and falls apart when one goes", () => {
  expect(switched([], "change")).toEqual(["change.*"]);
  expect(isChosen(["change.*"], "change", "detected")).toBe(true);
  expect(switched(["change.*"], "change", "detected")).toEqual(["change.new_page"]);
  expect(switched(["change.new_page"], "change", "detected")).toEqual(["change.*"]);
  expect(switched(["job.failed", "change.*"], "change")).toEqual(["job.failed"]);
});

test("no choice means everything", () => {
  expect([toldEvents([]), toldEvents(["job.*", "execution.index_failed"])]).toEqual(["all events", "job: all, run: index failed"]);
});
