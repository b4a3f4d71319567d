import { expect, test } from "vitest";
import { queryOf, readAskedJobs } from "./asked";

test("what cannot be meant is left out", () => {
  expect(readAskedJobs({ q: " ", status: "dancing", source: "x", sort: "created_at", page: "1" })).toEqual({});
  expect(readAskedJobs({ q: "<b>", status: "running", source: "3", sort: "next_run_at", page: 2 })).toEqual({ q: "<b>", status: "running", source: 3, sort: "next_run_at", page: 2 });
});

test("pages and orders as the server knows them", () => {
  expect(queryOf({ page: 3, sort: "next_run_at" }, 25)).toEqual({ limit: 25, offset: 50, sort_by: "next_run_at", sort_order: "asc" });
  expect(queryOf({ q: "ex", status: "failed" }, 25)).toEqual({ limit: 25, offset: 0, sort_by: "created_at", sort_order: "desc", search: "ex", status: "failed" });
});
