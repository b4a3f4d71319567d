import { useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { usePieces } from "@/control/page/usePieces";
import { useWrite } from "@/control/page/useWrite";

type Schemas = components["schemas"];
export type Webhook = Schemas["WebhookRecord"];
export type WebhookForm = Schemas["WebhookForm"];
export type WebhookChanges = Schemas["WebhookChangeForm"];
export type Delivery = Schemas["DeliveryRecord"];

/** GET /api/admin/webhooks */
export function useWebhooks() {
  return usePieces<Webhook>(["webhooks"], (cursor, signal) => body<Schemas["Piece_WebhookRecord"]>(api.GET("/api/admin/webhooks", { signal, params: { query: { cursor } } })));
}

/** GET /api/admin/webhooks/{id} */
export function useWebhook(id: number) {
  return useQuery({ queryKey: ["webhooks", id], queryFn: ({ signal }) => body<Webhook>(api.GET("/api/admin/webhooks/{id}", { signal, params: { path: { id } } })) });
}

/** POST /api/admin/webhooks */
export function useAddWebhook() {
  return useWrite((form: WebhookForm) => body<Webhook>(api.POST("/api/admin/webhooks", { body: form })), [["webhooks"]]);
}

/** PATCH /api/admin/webhooks/{id} */
export function useChangeWebhook(id: number) {
  return useWrite((form: WebhookChanges) => body<Webhook>(api.PATCH("/api/admin/webhooks/{id}", { params: { path: { id } }, body: form })), [["webhooks"]]);
}

/** DELETE /api/admin/webhooks/{id} */
export function useDeleteWebhook(id: number) {
  return useWrite(() => body(api.DELETE("/api/admin/webhooks/{id}", { params: { path: { id } } })), [["webhooks"]]);
}

/** POST /api/admin/webhooks/{id}/test */
export function useTestWebhook(id: number) {
  return useWrite(() => body<Delivery>(api.POST("/api/admin/webhooks/{id}/test", { params: { path: { id } } })), [["webhooks"]]);
}

/** POST /api/admin/webhooks/{id}/rotate-secret */
export function useRotateSecret(id: number) {
  return useWrite((atOnce: boolean) => body<Webhook>(api.POST("/api/admin/webhooks/{id}/rotate-secret", { params: { path: { id } }, body: { atOnce } })), [["webhooks"]]);
}

/** GET /api/admin/webhooks/{id}/deliveries */
export function useDeliveries(id: number, state: Delivery["state"] | undefined) {
  return usePieces<Delivery>(["webhooks", id, "deliveries", state], (cursor, signal) => body<Schemas["Piece_DeliveryRecord"]>(api.GET("/api/admin/webhooks/{id}/deliveries", { signal, params: { path: { id }, query: { state, cursor } } })), 5000);
}

/** POST /api/admin/webhooks/{id}/deliveries/{delivery_id}/redeliver */
export function useRedeliver(id: number) {
  return useWrite((delivery: number) => body<Delivery>(api.POST("/api/admin/webhooks/{id}/deliveries/{delivery_id}/redeliver", { params: { path: { id, delivery_id: delivery } } })), [["webhooks"]]);
}
