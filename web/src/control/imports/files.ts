/** Whether a file may be an archive, by its name; the server looks inside. */
export function isArchiveName(name: string): boolean {
  return /\.(warc|warc\.gz|warc\.zst|wacz|arc|arc\.gz)$/i.test(name);
}

/** Make a source's code of a file's name: lower-case letters, digits and hyphens, at most as many as the server makes. */
export function codeOf(name: string): string {
  const bare = name.toLowerCase().replace(/\.(warc|warc\.gz|warc\.zst|wacz|arc|arc\.gz)$/, "");
  return bare.normalize("NFD").replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 32).replace(/-+$/, "");
}

/** Whether the server would take it as a code. */
export function isCode(code: string): boolean {
  return /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/.test(code) && code.length <= 40;
}
