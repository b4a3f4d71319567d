import { Fragment, createElement, type ReactNode } from "react";
import { spoken } from "./spoken";
import { fill, unbroken } from "./words";

type Values = Record<string, string | number>;

/** Says the sentences of one part of the application in the language that was chosen. */
export interface Room<Key extends string> {
  (key: Key, values?: Values): string;
  /** A word of the server, as people say it: the sentence `kind.word`, else the word itself with spaces. */
  of: (kind: string, word: string, values?: Values) => string;
  readonly en: Readonly<Record<Key, string>>;
  readonly fr: Readonly<Record<Key, string>>;
}

/**
 * The sentences of one part of the application, loaded with it. The shell remounts its pages when the language changes,
 * so plain functions may say sentences, too.
 */
export function room<Key extends string>(en: Record<Key, string>, fr: Record<Key, string>): Room<Key> {
  const catalogues = { en, fr: unbroken(fr) };
  const say = (key: Key, values?: Values) => fill(spoken.language, catalogues[spoken.language][key], values);
  const of = (kind: string, word: string, values?: Values) => (`${kind}.${word}` in en ? say(`${kind}.${word}` as Key, values) : word.replaceAll("_", " "));
  return Object.assign(say, { of }, catalogues);
}

/** A sentence with elements in its holes: `{link}` becomes `parts.link`. */
export function withParts(sentence: string, parts: Record<string, ReactNode>): ReactNode {
  return sentence.split(/(\{\w+\})/).map((piece, at) => createElement(Fragment, { key: at }, parts[piece.slice(1, -1)] ?? piece));
}
