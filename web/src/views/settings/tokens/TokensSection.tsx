import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "~/api/client";
import type { CreatedToken, Session, Token } from "~/api/documents";
import { Button } from "~/design/Button";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { ShownOnce } from "~/design/ShownOnce";
import { Badge } from "~/design/StateMark";
import { Table } from "~/design/Table";
import { useSay } from "~/design/Toasts";
import { useNow, When } from "~/design/When";
import { counted } from "~/text/format";
import styles from "../Parts.module.css";
import { NewToken } from "./NewToken";
import { RevokeToken } from "./RevokeToken";

/** How programs prove who they are: your own tokens, and those of all users for an administrator. */
export function TokensSection({ session }: { readonly session: Session }) {
  const queries = useQueryClient();
  const say = useSay();
  const now = useNow();
  const [isNew, setNew] = useState(false);
  const [created, setCreated] = useState<CreatedToken | null>(null);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const [withEnded, setWithEnded] = useState(false);
  const mayCreate = session.rights.includes("train");
  const { data, error, refetch } = useQuery({
    queryKey: ["tokens"],
    queryFn: () => answer(api.GET("/api/tokens")),
  });
  const refresh = () => void queries.invalidateQueries({ queryKey: ["tokens"] });

  if (error && !data) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  const all = data?.items ?? [];
  const ended = all.filter((token) => endOf(token, now) !== null);
  const shown = withEnded ? all : all.filter((token) => endOf(token, now) === null);
  return (
    <>
      <div className={styles.head}>
        <h2>Tokens</h2>
        {mayCreate ? (
          <Button kind="main" onClick={() => setNew(true)}>
            Create a token
          </Button>
        ) : (
          <span className="quiet">A viewer cannot create tokens.</span>
        )}
      </div>
      <p className="quiet">
        A program sends its token with every request. {session.role === "admin" ? "You see those of all users." : ""}
      </p>
      {!data ? <Loading what="the tokens" /> : null}
      {data && shown.length === 0 ? (
        <Empty title="No tokens">
          Create one for each program or computer, so that you can revoke each on its own.
        </Empty>
      ) : null}
      {shown.length > 0 ? (
        <Table label="Tokens">
          <thead>
            <tr>
              <th scope="col">For</th>
              {session.role === "admin" ? <th scope="col">User</th> : null}
              <th scope="col">Rights</th>
              <th scope="col">Last used</th>
              <th scope="col">Created</th>
              <th scope="col">Expires</th>
              <th scope="col">
                <span className="visually-hidden">Revoke</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((token) => (
              <tr key={token.id}>
                <th scope="row">
                  {token.name} <span className="quiet mono">{token.id}</span>
                </th>
                {session.role === "admin" ? <td>{token.user}</td> : null}
                <td>{[...token.rights].reverse().join(", ")}</td>
                <td>{token.last_used_at ? <When at={token.last_used_at} /> : "never"}</td>
                <td>
                  <When at={token.created_at} />
                </td>
                <td>{token.expires_at ? <When at={token.expires_at} /> : "never"}</td>
                <td data-figure>
                  {endOf(token, now) !== null ? (
                    <Badge tone="waiting">{endOf(token, now)}</Badge>
                  ) : mayCreate ? (
                    <Button kind="danger" onClick={() => setRevoking(token)} aria-label={`Revoke ${token.name}`}>
                      Revoke
                    </Button>
                  ) : null}
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      ) : null}
      {ended.length > 0 ? (
        <label className={styles.choice}>
          <input type="checkbox" checked={withEnded} onChange={(event) => setWithEnded(event.target.checked)} />
          Also {counted(ended.length, "token")} that no longer work
        </label>
      ) : null}
      {isNew ? (
        <NewToken
          session={session}
          onClose={() => setNew(false)}
          onCreated={(token) => {
            setNew(false);
            setCreated(token);
            refresh();
          }}
        />
      ) : null}
      {created === null ? null : (
        <ShownOnce title={`The token ${created.name}`} secret={created.secret} onClose={() => setCreated(null)}>
          <p>
            A program sends it as <code>Authorization: Bearer …</code>; the command line reads it from{" "}
            <code>STATIONMASTER_TOKEN</code>.
          </p>
        </ShownOnce>
      )}
      {revoking === null ? null : (
        <RevokeToken
          token={revoking}
          onClose={() => setRevoking(null)}
          onRevoked={() => {
            say(`Revoked ${revoking.name}`);
            setRevoking(null);
            refresh();
          }}
        />
      )}
    </>
  );
}

/** Why a token no longer works; null: it does. */
function endOf(token: Token, now: number): "revoked" | "expired" | null {
  if (token.revoked_at) return "revoked";
  return token.expires_at && Date.parse(token.expires_at) <= now ? "expired" : null;
}
