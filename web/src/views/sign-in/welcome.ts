import type { QueryClient } from "@tanstack/react-query";
import { setCsrfToken } from "~/api/client";
import type { Session } from "~/api/documents";
import { sessionQuery } from "~/api/queries";

/** What the page keeps of a new session. */
export function welcome(queries: QueryClient, session: Session): void {
  setCsrfToken(session.csrf_token);
  queries.setQueryData(sessionQuery.queryKey, session);
}
