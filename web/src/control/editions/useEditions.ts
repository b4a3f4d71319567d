import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import type { Operation } from "@/control/operations/useOperations";
import { useWrite } from "@/control/page/useWrite";
import type { AskedEditions } from "./asked";

type Schemas = components["schemas"];
export type Edition = Schemas["AdminEdition"];
export type EditionDetail = Schemas["AdminEditionDetail"];
export type Shard = Schemas["EditionShard"];
export type Plan = Schemas["Plan"];
export type PlanForm = Schemas["EditionPlanForm"];

/** GET /api/admin/annual-editions */
export function useEditions(asked: AskedEditions) {
  return useQuery({
    queryKey: ["editions", "list", asked],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => body<Schemas["AdminEditionList"]>(api.GET("/api/admin/annual-editions", { signal, params: { query: { ...asked, limit: 100 } } })),
  });
}

/** GET /api/admin/annual-editions/{id} */
export function useEdition(id: number) {
  return useQuery({ queryKey: ["editions", id], refetchInterval: 10_000, queryFn: ({ signal }) => body<EditionDetail>(api.GET("/api/admin/annual-editions/{id}", { signal, params: { path: { id } } })) });
}

/** POST /api/admin/annual-editions/plan without `apply`: it only says what would be made */
export function usePlan(form: PlanForm | null) {
  return useQuery({ queryKey: ["editions", "plan", form], enabled: form !== null, retry: false, placeholderData: keepPreviousData, queryFn: ({ signal }) => body<Plan>(api.POST("/api/admin/annual-editions/plan", { signal, body: form as PlanForm })) });
}

/** POST /api/admin/annual-editions/plan */
export function useApplyPlan() {
  return useWrite((form: PlanForm) => body<Plan>(api.POST("/api/admin/annual-editions/plan", { body: form })), [["editions"], ["crawl"], ["scheduler"]]);
}

type ShardDecision = Schemas["ShardDecisionForm"];
type PageDecision = Schemas["PageDecisionForm"];
export type PageState = PageDecision["state"];

/** PUT /api/admin/annual-editions/jobs/{job_id}/decision */
export function useDecideShard() {
  return useWrite(({ job, ...decision }: ShardDecision & { job: number }) => body<EditionDetail>(api.PUT("/api/admin/annual-editions/jobs/{job_id}/decision", { params: { path: { job_id: job } }, body: decision })), [["editions"], ["coverage"]]);
}

/** PUT /api/admin/annual-editions/{id}/pages */
export function useDecidePage(id: number) {
  return useWrite((decision: PageDecision) => body<EditionDetail>(api.PUT("/api/admin/annual-editions/{id}/pages", { params: { path: { id } }, body: decision })), [["editions"], ["coverage"]]);
}

export type EditionWork = { kind: "report" } | { kind: "freeze"; again: boolean } | { kind: "verify"; quick: boolean } | { kind: "compare"; earlierYear: number };

/** POST /api/admin/annual-editions/{id}/report, freeze, verify or compare */
export function useEditionWork(id: number) {
  const params = { path: { id } };
  return useWrite((work: EditionWork) => {
    if (work.kind === "report") return body<Operation>(api.POST("/api/admin/annual-editions/{id}/report", { params }));
    if (work.kind === "freeze") return body<Operation>(api.POST("/api/admin/annual-editions/{id}/freeze", { params, body: { again: work.again } }));
    if (work.kind === "verify") return body<Operation>(api.POST("/api/admin/annual-editions/{id}/verify", { params, body: { quick: work.quick } }));
    return body<Operation>(api.POST("/api/admin/annual-editions/{id}/compare", { params, body: { earlierYear: work.earlierYear } }));
  }, [["operations"], ["editions"]]);
}
