export function NewSourcePage() { return null; }
export function SourcePage() { return null; }
