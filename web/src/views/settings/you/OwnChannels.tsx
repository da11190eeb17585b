import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answer, api } from "~/api/client";
import type { ListedUser } from "~/api/documents";
import { Button } from "~/design/Button";
import { ProblemNote } from "~/design/ProblemNote";
import { useSay } from "~/design/Toasts";
import { ChannelFields, changesOf, channelsOf } from "../ChannelFields";
import styles from "../Parts.module.css";

interface Props {
  readonly user: ListedUser;
  readonly mayChange: boolean;
  readonly onChanged: () => void;
}

export function OwnChannels({ user, mayChange, onChanged }: Props) {
  const say = useSay();
  const before = channelsOf(user);
  const [channels, setChannels] = useState(before);
  const changes = changesOf(before, channels);
  const save = useMutation({
    mutationFn: () => answer(api.PATCH("/api/users/{user}", { params: { path: { user: "me" } }, body: changes })),
    onSuccess: () => {
      say("Saved how messages reach you");
      onChanged();
    },
  });

  function submit(event: FormEvent): void {
    event.preventDefault();
    save.mutate();
  }

  return (
    <form className={styles.form} onSubmit={submit}>
      {mayChange ? null : <p>A viewer cannot change these. Ask an administrator.</p>}
      <ChannelFields channels={channels} onChange={setChannels} disabled={!mayChange} />
      {save.error ? <ProblemNote problem={save.error} /> : null}
      {mayChange ? (
        <div className={styles.buttons}>
          <Button kind="main" type="submit" busy={save.isPending} disabled={Object.keys(changes).length === 0}>
            Save
          </Button>
        </div>
      ) : null}
    </form>
  );
}
