import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answer, api } from "~/api/client";
import type { CreatedToken, Session } from "~/api/documents";
import { Button } from "~/design/Button";
import { Dialog } from "~/design/Dialog";
import { Field } from "~/design/Field";
import { ProblemNote } from "~/design/ProblemNote";
import { ALL_RIGHTS, RIGHTS, RIGHTS_OF } from "~/text/people";
import { NameField } from "../NameField";
import styles from "../Parts.module.css";
import { usersQuery } from "../queries";

const DAY = 86_400;
const LIFETIMES = [
  { label: "in 7 days", seconds: 7 * DAY },
  { label: "in 30 days", seconds: 30 * DAY },
  { label: "in 90 days", seconds: 90 * DAY },
  { label: "in one year", seconds: 365 * DAY },
  { label: "never", seconds: null },
] as const;

interface Props {
  readonly session: Session;
  readonly onClose: () => void;
  readonly onCreated: (token: CreatedToken) => void;
}

export function NewToken({ session, onClose, onCreated }: Props) {
  const mayManage = session.rights.includes("manage");
  const { data: people } = useQuery({ ...usersQuery, enabled: mayManage });
  const [name, setName] = useState("");
  const [user, setUser] = useState(session.user);
  const role = people?.items.find((each) => each.name === user)?.role ?? session.role;
  const possible = ALL_RIGHTS.filter((right) => RIGHTS_OF[role].includes(right) && session.rights.includes(right));
  const [wanted, setWanted] = useState<readonly string[]>(["read", "train"]);
  const rights = possible.filter((right) => wanted.includes(right));
  const [lifetime, setLifetime] = useState(2);
  const create = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/tokens", {
          body: { name: name.trim(), user, rights, expires_in_seconds: LIFETIMES[lifetime]?.seconds ?? null },
        }),
      ),
    onSuccess: onCreated,
  });

  function submit(event: FormEvent): void {
    event.preventDefault();
    create.mutate();
  }

  const names = [
    session.user,
    ...(people?.items ?? []).map((each) => each.name).filter((each) => each !== session.user),
  ];
  return (
    <Dialog open onClose={onClose} title="Create a token">
      <form className={styles.form} onSubmit={submit}>
        <NameField label="What it is for" help="Such as “telegram bot” or “laptop”." value={name} onChange={setName} />
        {mayManage && names.length > 1 ? (
          <Field label="User" help="Requests with it are made as this user.">
            {(control) => (
              <select {...control} value={user} onChange={(event) => setUser(event.target.value)}>
                {names.map((each) => (
                  <option key={each}>{each}</option>
                ))}
              </select>
            )}
          </Field>
        ) : null}
        <fieldset className={styles.group}>
          <legend>Rights</legend>
          {possible.map((right) => (
            <label key={right} className={styles.choice}>
              <input
                type="checkbox"
                checked={rights.includes(right)}
                onChange={(event) =>
                  setWanted(event.target.checked ? [...wanted, right] : wanted.filter((each) => each !== right))
                }
              />
              <span>
                {right} <span className="quiet">({RIGHTS[right]})</span>
              </span>
            </label>
          ))}
        </fieldset>
        <Field label="Expires">
          {(control) => (
            <select {...control} value={lifetime} onChange={(event) => setLifetime(Number(event.target.value))}>
              {LIFETIMES.map((each, place) => (
                <option key={each.label} value={place}>
                  {each.label}
                </option>
              ))}
            </select>
          )}
        </Field>
        {create.error ? <ProblemNote problem={create.error} /> : null}
        <div className={styles.buttons}>
          <Button kind="main" type="submit" busy={create.isPending} disabled={rights.length === 0}>
            Create
          </Button>
          <Button onClick={onClose}>Leave it</Button>
        </div>
      </form>
    </Dialog>
  );
}
