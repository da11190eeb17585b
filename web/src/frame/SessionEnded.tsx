/** The session is over while the page is open: signs in again over the view, so that nothing typed there is lost. */
import { onlineManager, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { answer, api } from "~/api/client";
import { connection } from "~/api/connection";
import type { Session } from "~/api/documents";
import { sessionQuery } from "~/api/queries";
import { Dialog } from "~/design/Dialog";
import { TokenForm } from "~/views/sign-in/TokenForm";
import { welcome } from "~/views/sign-in/welcome";

export default function SessionEnded() {
  const queries = useQueryClient();
  const [before] = useState<Session | undefined>(() => queries.getQueryData(sessionQuery.queryKey));

  useEffect(() => {
    // Nothing is asked meanwhile: each refusal would count as a failed sign-in.
    onlineManager.setOnline(false);
    return () => onlineManager.setOnline(true);
  }, []);

  useEffect(() => {
    // Another window of this browser may have signed in.
    const look = () => {
      void answer(api.GET("/api/session")).then(goOn, () => undefined);
    };
    window.addEventListener("focus", look);
    return () => window.removeEventListener("focus", look);
  });

  function goOn(session: Session): void {
    if (before && before.user !== session.user) {
      window.location.assign("/"); // what is on the page belongs to another user
      return;
    }
    welcome(queries, session);
    onlineManager.setOnline(true);
    connection.signedIn();
    void queries.invalidateQueries();
  }

  return (
    <Dialog open onClose={() => undefined} title="Your session has ended">
      <p>Sign in again to continue. What you typed on this page is still there.</p>
      <TokenForm onSession={goOn} />
      <a href={`/sign-in?next=${encodeURIComponent(window.location.pathname + window.location.search)}`}>
        Leave this page and sign in as another user
      </a>
    </Dialog>
  );
}
