import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { mayPass } from "@/api/problem";
import { onSessionEnd } from "@/api/session";
import { router } from "@/app/routes";
import { LanguageProvider } from "@/language/LanguageContext";
import "@/design/tokens.css";

const queries = new QueryClient({
  defaultOptions: { queries: { staleTime: 30_000, retry: (times, problem) => times < 2 && mayPass(problem) } },
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
