import { useMutation, type MutationFunctionContext, type UseMutationOptions } from "@tanstack/react-query";
import { useState } from "react";
import { once, type UnderWay } from "./once";

type Options<Given, Answer> = Omit<UseMutationOptions<Answer, Error, Given>, "mutationFn"> & { mutationFn: (given: Given, context: MutationFunctionContext) => Promise<Answer> };

/** Query's useMutation for everything that changes something: a second click on its button asks for nothing more. */
export function useDeed<Given = void, Answer = unknown>(options: Options<Given, Answer>) {
  const [underWay] = useState<UnderWay<Answer>>(() => new Map());
  return useMutation({ ...options, mutationFn: (given: Given, context) => once(underWay, given, () => options.mutationFn(given, context)) });
}
