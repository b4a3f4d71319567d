import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { connection, watchConnection } from "@/api/connection";
import { mayPass } from "@/api/problem";
import { onSessionEnd } from "@/api/session";
import { router } from "@/app/routes";
import { LanguageProvider } from "@/language/LanguageContext";
import "@/design/tokens.css";

const queries = new QueryClient({
  defaultOptions: {
    // Whether the server answers is known by api/connection: an archive on this very machine answers without a network.
    queries: { staleTime: 30_000, networkMode: "always", retry: (times, problem) => times < 2 && mayPass(problem) },
    mutations: { networkMode: "always" },
  },
});
watchConnection();
connection.subscribe(() => {
  if (connection.since() === null) void queries.invalidateQueries();
});
onSessionEnd(() => void queries.invalidateQueries({ queryKey: ["session"] }));
const place = document.getElementById("root");
if (place) {
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <LanguageProvider><RouterProvider router={router} /></LanguageProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
}
