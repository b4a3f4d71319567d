import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { afterEach, expect, test } from "vitest";
import { loadRooms } from "@/language/room";
import { speakOutside } from "@/language/spoken";
import { capturesSaid, domainSaid, robotsSaid, stepSaid, turnSaid } from "./said";
import { Turn } from "./Turn";
import type { Explanation } from "./useExplanation";
import { verdicts } from "./verdict";

afterEach(() => { speakOutside("en"); });

const robots: Explanation["robots"] = { origin: "https://a.example", known: "rules", allowed: false, rule: null, line: null, crawlDelayS: null, status: 200, failures: 0, fetchedAt: null, checkedAt: null, nextTryAt: null, live: false, ignoredBy: [], sentence: "x" };
const domain: NonNullable<Explanation["domain"]> = { name: "a.example", known: true, allowed: true, pausedSince: null, delayS: 2, delayReasons: [], nextAllowedAt: null, circuit: "open", circuitFailures: 5, circuitOpenUntil: null, unreachableSince: null, penalty: 1, holder: null, sentence: "x" };
const turn = { kind: "queued", source: "town", job: 1, execution: 7, at: null, place: 3, sentence: "it is number 3" } as const;

test("English sentences are the server's own", () => {
  expect(turnSaid(turn)).toBe("It is number 3.");
});

test("French sentences are made of the record's facts", async () => {
  speakOutside("fr");
  await loadRooms();

  expect(turnSaid(turn)).toBe("Elle est à la place 3 de la file de son domaine dans la collecte 7, qui attend un processus.");
  expect(robotsSaid(robots)).toBe("robots.txt l’interdit.");
  expect(capturesSaid({ count: 2, isExact: true, sentence: "x" } as Parameters<typeof capturesSaid>[0])).toBe("2 captures de cette page.");
  expect(capturesSaid({ count: 10_000, isExact: false, sentence: "x" } as Parameters<typeof capturesSaid>[0])).toMatch(/^Plus de 10\s000 captures de cette page\.$/);
  expect(stepSaid({ step: "https", after: "", sentence: "x" })).toBe("Http et https sont une même page.");
});

test("a reason that French has no sentence for is shown in English", async () => {
  speakOutside("fr");
  await loadRooms();
  const shown = (one: Parameters<typeof turnSaid>[0]) => renderToStaticMarkup(createElement(Turn, { turn: one }));

  expect(shown({ ...turn, place: null, kind: "never", sentence: "never by town: the source is disabled" })).toBe('<span lang="en">Never by town: the source is disabled.</span>');
  expect(shown({ ...turn, kind: "waits", sentence: "job 1 of town is paused" })).toBe('<span lang="en">Job 1 of town is paused.</span>');
  expect(shown({ ...turn, place: null, execution: null, sentence: "a run is queued" })).toBe('<span lang="en">A run is queued.</span>');
  expect(shown({ ...turn, place: null })).toBe("La collecte 7 est en file d’attente et démarre dès qu’un processus est libre.");
});

test("French names who ignores robots.txt, and says when none applies", async () => {
  speakOutside("fr");
  await loadRooms();
  const ignoredBy = ["town", "port"];

  expect(robotsSaid({ ...robots, ignoredBy })).toBe("robots.txt l’interdit\u00a0; ignoré par town, port, comme le dit le journal d’audit.");
  expect(robotsSaid({ ...robots, allowed: null, known: "unknown", ignoredBy })).toContain("ignoré par town");
  expect(robotsSaid({ ...robots, allowed: true, ignoredBy })).toBe("robots.txt l’autorise.");
  expect(robotsSaid({ ...robots, origin: null, allowed: null, known: "unknown" })).toBe("Aucun robots.txt ne s’applique\u00a0: aucune collecte ne demanderait cette adresse.");
});

test("a circuit is open until its time only, though its row stays open", async () => {
  const ready = { address: { refused: null }, sources: { inScope: [] }, robots, outlook: { next: turn } } as unknown as Explanation;
  expect(verdicts({ ...ready, domain }).domain.word).toBe("ready");
  expect(verdicts({ ...ready, domain: { ...domain, circuitOpenUntil: "2026-11-19T10:00:05Z" } }).domain.word).toBe("circuit open");

  speakOutside("fr");
  await loadRooms();
  expect(domainSaid(domain)).toBe("Une requête au plus toutes les 2 s. Après des échecs de suite, un nouvel essai est en cours.");
  expect(domainSaid({ ...domain, circuitOpenUntil: "2026-11-19T10:00:05Z", unreachableSince: "2026-11-18T00:00:00Z" })).toBe("Une requête au plus toutes les 2 s. 5 échecs de suite\u00a0: les requêtes sont suspendues jusqu’à 10:00:05 UTC. Il ne répond pas.");
});
