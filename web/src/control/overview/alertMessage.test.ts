import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { afterEach, expect, test } from "vitest";
import { loadRooms } from "@/language/room";
import { speakOutside } from "@/language/spoken";
import { alerted } from "./alerted";
import { AlertMessage } from "./AlertMessage";

afterEach(() => { speakOutside("en"); });

const alert = { name: "worker_silent", value: 120, message: "worker 3 on host-a has been silent for 2 minutes" } as const;
const shown = () => renderToStaticMarkup(createElement(AlertMessage, { alert }));

test("an alert in English says its message once", () => {
  expect(alerted(alert)).toBe(alert.message);
  expect(shown()).toBe("");
});

test("an alert in French keeps the message that names the worker", async () => {
  speakOutside("fr");
  await loadRooms();

  expect(alerted(alert)).toContain("Un processus de collecte est sans nouvelles");
  expect(shown()).toMatch(/^<span lang="en"[^>]*>Worker 3 on host-a has been silent for 2 minutes\.<\/span>$/);
});
