import { type FormEvent, useCallback, useEffect, useRef, useState } from "react";
import { answer, api } from "~/api/client";
import type { Session } from "~/api/documents";
import { asProblem } from "~/api/problem";
import { Button } from "~/design/Button";
import { Field } from "~/design/Field";
import { SignInProblem } from "./SignInProblem";
import styles from "./SignInView.module.css";

interface Props {
  readonly onSession: (session: Session) => void;
  /** The code of a link that was opened: it is used at once. */
  readonly code?: string | null;
}

/** Signs in with a typed token, or with the code of a link. */
export function TokenForm({ onSession, code = null }: Props) {
  const [problem, setProblem] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(code !== null);
  const [wait, setWait] = useState(0);

  const signIn = useCallback(
    async (proof: string) => {
      setBusy(true);
      setProblem(null);
      try {
        onSession(await answer(api.POST("/api/session", { body: { code: proof } })));
      } catch (error) {
        setProblem(error);
        setWait(Math.ceil(asProblem(error).retryAfterSeconds ?? 0));
        setBusy(false);
      }
    },
    [onSession],
  );

  const used = useRef<string | null>(null);
  useEffect(() => {
    if (code === null || code === used.current) return;
    used.current = code; // a code works once
    void signIn(code);
  }, [code, signIn]);

  useEffect(() => {
    if (wait <= 0) return;
    const timer = window.setTimeout(() => setWait(wait - 1), 1_000);
    return () => window.clearTimeout(timer);
  }, [wait]);

  function submit(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault();
    const token = new FormData(event.currentTarget).get("token");
    event.currentTarget.reset();
    if (typeof token === "string" && token.trim()) void signIn(token.trim());
  }

  return (
    <form onSubmit={submit} className={styles.form}>
      {problem ? <SignInProblem problem={problem} wait={wait} wasLink={code !== null} /> : null}
      <Field
        label="Token"
        help={
          <>
            The server's operator has one: <code>stationmaster tokens link</code> prints a link that signs you in once,{" "}
            <code>stationmaster tokens create</code> a token.
          </>
        }
      >
        {(control) => (
          <input
            {...control}
            name="token"
            type="password"
            autoComplete="off"
            spellCheck={false}
            required
            maxLength={200}
            disabled={isBusy || wait > 0}
          />
        )}
      </Field>
      <Button kind="main" type="submit" busy={isBusy} disabled={wait > 0}>
        {isBusy ? "Signing in" : wait > 0 ? `Sign in (wait ${wait} s)` : "Sign in"}
      </Button>
    </form>
  );
}
