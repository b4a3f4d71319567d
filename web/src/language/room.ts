import { Fragment, createElement, type ReactNode } from "react";
import { spoken } from "./spoken";
import { fill } from "./words";

type Values = Record<string, string | number>;

/** Says the sentences of one part of the application in the language that was chosen. */
export interface Room<Key extends string> {
  (key: Key, values?: Values): string;
  /** A word of the server, as people say it: the sentence `kind.word`, else the word itself with spaces. */
  of: (kind: string, word: string, values?: Values) => string;
  readonly en: Readonly<Record<Key, string>>;
}

let french: Readonly<Record<string, Readonly<Record<string, string>>>> | null = null;
let hasRooms = false;

/** Load what the rooms need to speak `language`; English comes with them, and pages without a room need nothing. */
export async function loadRooms(language = spoken.language): Promise<void> {
  if (language === "fr" && hasRooms) french ??= (await import("./french")).french;
}

/**
 * The sentences of one part of the control room. `language/french` has the same keys under the same name, loaded once
 * for all rooms by `loadRooms`. The shell remounts its pages when the language changes, so plain functions may say
 * sentences, too.
 */
export function room<Key extends string>(name: string, en: Record<Key, string>): Room<Key> {
  hasRooms = true;
  const say = (key: Key, values?: Values) => fill(spoken.language, (spoken.language === "fr" ? french?.[name]?.[key] : undefined) ?? en[key], values);
  const of = (kind: string, word: string, values?: Values) => (`${kind}.${word}` in en ? say(`${kind}.${word}` as Key, values) : word.replaceAll("_", " "));
  return Object.assign(say, { of, en });
}

/** A sentence with elements in its holes: `{link}` becomes `parts.link`. */
export function withParts(sentence: string, parts: Record<string, ReactNode>): ReactNode {
  return sentence.split(/(\{\w+\})/).map((piece, at) => createElement(Fragment, { key: at }, parts[piece.slice(1, -1)] ?? piece));
}
