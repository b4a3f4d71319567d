/** Write a machine's word for people: blocked_robots becomes blocked robots. */
export function plain(word: string): string {
  return word.replaceAll("_", " ");
}
