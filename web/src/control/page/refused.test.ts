import { expect, test } from "vitest";
import { ApiProblem } from "@/api/problem";
import { refusedAt } from "./refused";

const told = (message: string, field?: string) => new ApiProblem(422, "invalid", message, "", "", field, undefined);

test("what is wrong stands at its field, by name or by how the sentence begins", () => {
  expect(refusedAt(told("name: it has 1 to 64 letters"), "name")).toBe("It has 1 to 64 letters");
  expect(refusedAt(told("it is too long", "urls.3"), "urls")).toBe("It is too long");
  expect(refusedAt(told("there is no room"), "name")).toBeNull();
  expect(refusedAt(new Error("name: x"), "name")).toBeNull();
});
