import { useQueryClient, type QueryKey } from "@tanstack/react-query";
import { useDeed } from "@/api/useDeed";

/** A write, and the questions whose answers it changes: they are asked again before it counts as done. */
export function useWrite<Given, Answer>(write: (given: Given) => Promise<Answer>, touched: QueryKey[]) {
  const queries = useQueryClient();
  return useDeed({
    mutationFn: write,
    onSuccess: async () => {
      await Promise.all(touched.map((queryKey) => queries.invalidateQueries({ queryKey })));
    },
  });
}
