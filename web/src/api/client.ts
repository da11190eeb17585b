/** Requests to the API, with types from its own description. `answer(api.GET("/api/jobs"))` gives the body or throws. */
import createClient, { type Middleware } from "openapi-fetch";
import { connection } from "~/api/connection";
import { Problem, problemOf } from "~/api/problem";
import type { paths } from "~/api/schema";

let csrfToken: string | null = null;

/** Every change must carry it; the session's document has it. */
export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

const SAFE = new Set(["GET", "HEAD"]);

const gate: Middleware = {
  onRequest({ request }) {
    if (!SAFE.has(request.method) && csrfToken !== null) request.headers.set("X-CSRF-Token", csrfToken);
    return request;
  },
  onResponse({ response }) {
    connection.reached();
    if (response.status === 401) connection.signedOut();
    return response;
  },
  onError() {
    connection.failed();
    return new Problem("The server does not answer.", 0, "Is `stationmaster up` still running?");
  },
};

export const api = createClient<paths>({ baseUrl: window.location.origin });
api.use(gate);

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The body of an answer. Throws a Problem if the server refused. */
export async function answer<T>(asked: Promise<Answer<T>>): Promise<NonNullable<T>> {
  const { data, error, response } = await asked;
  if (error !== undefined || data === undefined || data === null) throw problemOf(response.status, error);
  return data;
}

/** For answers without a body. */
export async function done(asked: Promise<Answer<unknown>>): Promise<void> {
  const { error, response } = await asked;
  if (error !== undefined || !response.ok) throw problemOf(response.status, error);
}
