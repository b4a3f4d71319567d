export function ManagedSourcesPage() { return null; }
