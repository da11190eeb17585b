import { useQueryClient } from "@tanstack/react-query";
import { useRouter, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { connection } from "~/api/connection";
import type { Session } from "~/api/documents";
import { useTitle } from "~/frame/title";
import styles from "./SignInView.module.css";
import { TokenForm } from "./TokenForm";
import { welcome } from "./welcome";

/** Signs in with the code after the # of the address, or with a typed token. */
export function SignInView() {
  useTitle("Sign in");
  const queries = useQueryClient();
  const { history } = useRouter();
  const search: { next?: string } = useSearch({ strict: false });
  const [code] = useState(() => window.location.hash.slice(1) || null);

  useEffect(() => {
    // The code must not stay in the address bar or in the browser's history.
    if (code) window.history.replaceState(null, "", window.location.pathname + window.location.search);
  }, [code]);

  function enter(session: Session): void {
    welcome(queries, session);
    connection.signedIn();
    // Only a place on this page: an address of another site must not be reachable by a link to this one.
    const then = search.next?.startsWith("/") && !search.next.startsWith("//") ? search.next : "/";
    history.replace(then);
  }

  return (
    <main className={styles.page}>
      <div>
        <p className={styles.name}>Stationmaster</p>
        <h1>Sign in</h1>
      </div>
      <TokenForm onSession={enter} code={code} />
    </main>
  );
}
