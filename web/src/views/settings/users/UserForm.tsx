import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answer, api } from "~/api/client";
import type { ListedUser, Session } from "~/api/documents";
import { Button } from "~/design/Button";
import { Dialog } from "~/design/Dialog";
import { Field } from "~/design/Field";
import { ProblemNote } from "~/design/ProblemNote";
import { ROLES } from "~/text/people";
import { ChannelFields, changesOf, channelsOf } from "../ChannelFields";
import { NameField } from "../NameField";
import styles from "../Parts.module.css";

type Role = Session["role"];

interface Props {
  /** Null: a new one. */
  readonly user: ListedUser | null;
  readonly onClose: () => void;
  readonly onDone: (what: string) => void;
}

export function UserForm({ user, onClose, onDone }: Props) {
  const before = channelsOf(user);
  const [name, setName] = useState(user?.name ?? "");
  const [role, setRole] = useState<Role>(user?.role ?? "user");
  const [channels, setChannels] = useState(before);
  const changes = { ...changesOf(before, channels), ...(role === user?.role ? {} : { role }) };
  const save = useMutation({
    mutationFn: () =>
      user === null
        ? answer(api.POST("/api/users", { body: { ...changes, inbox: channels.inbox, name: name.trim() } }))
        : answer(api.PATCH("/api/users/{user}", { params: { path: { user: user.name } }, body: changes })),
    onSuccess: (saved) => onDone(user === null ? `Added ${saved.name}` : `Changed ${saved.name}`),
  });

  function submit(event: FormEvent): void {
    event.preventDefault();
    save.mutate();
  }

  return (
    <Dialog open wide onClose={onClose} title={user === null ? "Add a user" : `Change ${user.name}`}>
      <form className={styles.form} onSubmit={submit}>
        <div className={styles.columns}>
          {user === null ? (
            <NameField
              label="Name"
              help="Shown on their jobs. It cannot be changed later."
              value={name}
              onChange={setName}
            />
          ) : null}
          <Field label="Role" help={`${ROLES[role].label}: ${ROLES[role].may}.`}>
            {(control) => (
              <select {...control} value={role} onChange={(event) => setRole(event.target.value as Role)}>
                {(Object.keys(ROLES) as Role[]).map((each) => (
                  <option key={each} value={each}>
                    {ROLES[each].label}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <ChannelFields channels={channels} onChange={setChannels} />
        {save.error ? <ProblemNote problem={save.error} /> : null}
        <div className={styles.buttons}>
          <Button
            kind="main"
            type="submit"
            busy={save.isPending}
            disabled={user !== null && Object.keys(changes).length === 0}
          >
            {user === null ? "Add" : "Save"}
          </Button>
          <Button onClick={onClose}>Leave it</Button>
        </div>
      </form>
    </Dialog>
  );
}
