export function FeedsPage() { return null; }
