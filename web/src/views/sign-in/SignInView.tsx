import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useCallback, useEffect, useState } from "react";
import { answer, api, setCsrfToken } from "~/api/client";
import { connection } from "~/api/connection";
import { sessionQuery } from "~/api/queries";
import { Button } from "~/design/Button";
import { Field } from "~/design/Field";
import { ProblemNote } from "~/design/ProblemNote";
import styles from "./SignInView.module.css";

/** Signs in with the code after the # of the address, or with a token that somebody types. */
export function SignInView() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const search: { next?: string } = useSearch({ strict: false });
  const [problem, setProblem] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);

  const signIn = useCallback(
    async (code: string) => {
      setBusy(true);
      setProblem(null);
      try {
        const session = await answer(api.POST("/api/session", { body: { code } }));
        setCsrfToken(session.csrf_token);
        queries.setQueryData(sessionQuery.queryKey, session);
        connection.signedIn();
        // Only a place on this page: an address of another site must not be reachable by a link to this one.
        const then = search.next?.startsWith("/") && !search.next.startsWith("//") ? search.next : "/";
        await navigate({ to: then, replace: true });
      } catch (error) {
        setProblem(error);
        setBusy(false);
      }
    },
    [navigate, queries, search.next],
  );

  useEffect(() => {
    const code = window.location.hash.slice(1);
    if (!code) return;
    // The code must not stay in the address bar or in the browser's history.
    window.history.replaceState(null, "", window.location.pathname + window.location.search);
    void signIn(code);
  }, [signIn]);

  function submit(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault();
    const token = new FormData(event.currentTarget).get("token");
    event.currentTarget.reset();
    if (typeof token === "string" && token.trim()) void signIn(token.trim());
  }

  return (
    <main className={styles.page}>
      <h1>Sign in to Stationmaster</h1>
      {problem ? <ProblemNote problem={problem} /> : null}
      <form onSubmit={submit}>
        <Field
          label="Token"
          help={
            <>
              For a link that signs you in once, run <code>stationmaster tokens link</code> on the server.
            </>
          }
        >
          {(control) => (
            <input
              {...control}
              name="token"
              type="password"
              autoComplete="off"
              required
              maxLength={200}
              disabled={isBusy}
            />
          )}
        </Field>
        <Button kind="main" type="submit" busy={isBusy}>
          Sign in
        </Button>
      </form>
    </main>
  );
}
