import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Session } from "~/api/documents";
import { Button } from "~/design/Button";
import { Field } from "~/design/Field";
import { ProblemNote } from "~/design/ProblemNote";
import styles from "../MoneyView.module.css";
import { credits } from "./amounts";
import { ChangeCredits } from "./ChangeCredits";
import own from "./CreditsBlock.module.css";
import { Ledger } from "./Ledger";
import { Lots } from "./Lots";
import { Proof } from "./Proof";
import { accountQuery, accountsQuery, creditSettingsQuery } from "./queries";
import { RefundJob } from "./RefundJob";

/** Prepaid credits, where this server uses them: the balance, when it expires, and every change. */
export function CreditsBlock({ session }: { readonly session: Session }) {
  const { data: settings } = useQuery(creditSettingsQuery);
  if (!settings?.enabled) return null;
  return <Credits session={session} points={settings.points_per_dollar ?? null} />;
}

function Credits({ session, points }: { readonly session: Session; readonly points: number | null }) {
  const mayManage = session.rights.includes("manage");
  const [user, setUser] = useState(session.user);
  const [open, setOpen] = useState<"change" | "refund" | null>(null);
  const { data: account, error } = useQuery(accountQuery(user));
  const { data: accounts } = useQuery({ ...accountsQuery, enabled: session.role === "admin" });
  const names = [...new Set([session.user, user, ...(accounts?.items ?? []).map((each) => each.user)])].sort();
  return (
    <section className={styles.block} aria-labelledby="credits">
      <div className={styles.head}>
        <h2 id="credits">Credits</h2>
        {account ? (
          <p>
            <strong>{credits(account.balance_micros, points)}</strong> to spend
            {account.held_micros > 0 ? `, ${credits(account.held_micros, points)} held for running trainings` : ""}
          </p>
        ) : null}
      </div>
      {names.length > 1 || mayManage ? (
        <div className={own.actions}>
          <Field label="Account">
            {(control) => (
              <select {...control} value={user} onChange={(event) => setUser(event.target.value)}>
                {names.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            )}
          </Field>
          {mayManage ? (
            <>
              <Button onClick={() => setOpen("change")}>Give or correct credits</Button>
              <Button onClick={() => setOpen("refund")}>Refund a training</Button>
              <Proof points={points} />
            </>
          ) : null}
        </div>
      ) : null}
      {error ? <ProblemNote problem={error} /> : null}
      {account ? <Lots lots={account.lots} points={points} /> : null}
      <Ledger user={user} points={points} />
      {open === "change" ? <ChangeCredits user={user} points={points} onClose={() => setOpen(null)} /> : null}
      {open === "refund" ? <RefundJob points={points} onClose={() => setOpen(null)} /> : null}
    </section>
  );
}
