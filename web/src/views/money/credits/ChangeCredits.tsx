import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answer, api } from "~/api/client";
import { Button } from "~/design/Button";
import { Confirm, Dialog } from "~/design/Dialog";
import { Field } from "~/design/Field";
import { useSay } from "~/design/Toasts";
import { credits, typedMicros } from "./amounts";
import styles from "./CreditsBlock.module.css";

type Kind = "grant" | "top-up" | "reward" | "adjustment";
const KINDS: readonly { readonly kind: Kind; readonly label: string }[] = [
  { kind: "grant", label: "Gift" },
  { kind: "top-up", label: "Top-up, paid for" },
  { kind: "reward", label: "Reward" },
  { kind: "adjustment", label: "Correction, up or down" },
];
const DAY = 86_400;

interface Props {
  readonly user: string;
  readonly points: number | null;
  readonly onClose: () => void;
}

/** Gives credits to a user, or corrects their balance; asked for twice, since money moves. */
export function ChangeCredits({ user, points, onClose }: Props) {
  const queries = useQueryClient();
  const say = useSay();
  const [kind, setKind] = useState<Kind>("grant");
  const [amount, setAmount] = useState("");
  const [reason, setReason] = useState("");
  const [days, setDays] = useState("");
  const [isAsking, setAsking] = useState(false);
  // The same key however often it is sent: a second click, or a lost answer, gives nothing twice.
  const [key] = useState(() => `page-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`);
  const micros = typedMicros(amount, points);
  const isWrong = amount !== "" && (micros === null || (micros < 0 && kind !== "adjustment"));
  const lifetime = days === "" ? null : Number(days) * DAY;

  const send = useMutation({
    mutationFn: () => {
      const params = { path: { user } };
      const body = { amount_micros: micros ?? 0, reason: reason.trim(), key };
      if (kind === "adjustment") return answer(api.POST("/api/users/{user}/credits/adjustments", { params, body }));
      return answer(
        api.POST("/api/users/{user}/credits/grants", {
          params,
          body: { ...body, kind, expires_in_seconds: lifetime },
        }),
      );
    },
    onSuccess: (account) => {
      say(`${user} has ${credits(account.balance_micros, points)} to spend now`);
      void queries.invalidateQueries({ queryKey: ["credits"] });
      onClose();
    },
  });

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (micros !== null && !isWrong) setAsking(true);
  }

  if (isAsking && micros !== null) {
    const takes = micros < 0;
    return (
      <Confirm
        open
        danger={takes}
        title={takes ? `Take ${credits(-micros, points)} from ${user}?` : `Give ${credits(micros, points)} to ${user}?`}
        action={takes ? `Take ${credits(-micros, points)}` : `Give ${credits(micros, points)}`}
        onClose={() => setAsking(false)}
        onConfirm={() => send.mutate()}
        busy={send.isPending}
        problem={send.error}
      >
        <p>
          It is entered in {user}'s statement as “{reason.trim()}” and cannot be deleted, only corrected by another
          entry.
        </p>
        {lifetime !== null && kind !== "adjustment" ? <p>What is left of it expires in {days} days.</p> : null}
      </Confirm>
    );
  }
  return (
    <Dialog open onClose={onClose} title={`Credits of ${user}`}>
      <form className={styles.form} onSubmit={submit}>
        <Field label="What it is">
          {(control) => (
            <select {...control} value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
              {KINDS.map((each) => (
                <option key={each.kind} value={each.kind}>
                  {each.label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field
          label={points === null ? "Amount in dollars" : "Amount in points"}
          help={kind === "adjustment" ? "A negative amount takes credits away." : undefined}
          problem={isWrong ? `Enter an amount ${kind === "adjustment" ? "other than" : "above"} zero.` : null}
        >
          {(control) => (
            <input
              {...control}
              value={amount}
              onChange={(event) => setAmount(event.target.value)}
              inputMode="decimal"
              required
              maxLength={20}
              autoComplete="off"
            />
          )}
        </Field>
        <Field label="Reason" help="Shown in the statement.">
          {(control) => (
            <input
              {...control}
              value={reason}
              onChange={(event) => setReason(event.target.value)}
              required
              maxLength={200}
              autoComplete="off"
            />
          )}
        </Field>
        {kind === "adjustment" ? null : (
          <Field label="Expires in days" help="Empty: never.">
            {(control) => (
              <input
                {...control}
                type="number"
                min={1}
                max={3650}
                value={days}
                onChange={(event) => setDays(event.target.value)}
              />
            )}
          </Field>
        )}
        <div className={styles.buttons}>
          <Button kind="main" type="submit">
            Go on
          </Button>
          <Button onClick={onClose}>Leave it</Button>
        </div>
      </form>
    </Dialog>
  );
}
