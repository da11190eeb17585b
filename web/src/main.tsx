import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "~/design/base.css";
import { overviewQuery } from "~/api/overview";
import { asProblem } from "~/api/problem";
import { ToastProvider } from "~/design/Toasts";
import { createPageRouter } from "~/router";

// Dialogs put a style into the page while they are open; the server's policy allows those that carry its number.
setNonce(document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "");

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      // A refusal does not change by asking again; a server that restarts answers soon.
      retry: (failures, error) => asProblem(error).isUnreachable && failures < 3,
      refetchOnWindowFocus: true,
    },
  },
});
const router = createPageRouter(queries);
// What the first view needs is fetched while the session is asked for, not afterwards.
const [matched] = router.getMatchedRoutes(window.location.pathname);
if (window.location.pathname === "/") void queries.prefetchQuery(overviewQuery);
for (const { options } of matched) {
  void options.component?.preload?.();
}

const place = document.getElementById("page");
if (place === null) throw new Error("the page has no place to be drawn in");
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <ToastProvider>
        <RouterProvider router={router} />
      </ToastProvider>
    </QueryClientProvider>
  </StrictMode>,
);
