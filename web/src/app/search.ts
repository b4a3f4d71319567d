/**
 * Read the address bar by one of our readers, and let nothing else through.
 * The router lays what a reader returns over what was typed, so that what it left out would come back as it was.
 */
export function only<Asked extends object>(read: (found: Record<string, unknown>) => Asked): (found: Record<string, unknown>) => Asked {
  return (found) => ({ ...Object.fromEntries(Object.keys(found).map((name) => [name, undefined])), ...read(found) });
}
