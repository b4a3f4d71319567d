interface Asked {
  isActive: () => boolean;
  state: { status: string; data: unknown; dataUpdatedAt: number };
}

/** Return since when the oldest data on the page is shown that could not be refreshed; null if all could. */
export function oldestFailed(queries: readonly Asked[]): number | null {
  const failed = queries.filter((one) => one.isActive() && one.state.status === "error" && one.state.data != null);
  return failed.length === 0 ? null : Math.min(...failed.map((one) => one.state.dataUpdatedAt));
}
