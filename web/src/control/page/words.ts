/** Write a machine's word for people: blocked_robots becomes blocked robots. */
export function plain(word: string): string {
  return word.replaceAll("_", " ");
}

/** Write what a program says in small letters as a sentence: a capital first, a stop at the end. */
export function sentence(said: string): string {
  // A name of a file or a host keeps its spelling.
  const first = /^[^\s.:/]*[.:/]\S/.test(said) ? said : said.charAt(0).toUpperCase() + said.slice(1);
  return /[.!?…]$/.test(first) || !first ? first : `${first}.`;
}
