import { useMutation } from "@tanstack/react-query";
import { api, done } from "~/api/client";
import { Confirm } from "~/design/Dialog";

interface Props {
  readonly user: string;
  readonly onClose: () => void;
  readonly onDone: (what: string) => void;
}

export function RemoveUser({ user, onClose, onDone }: Props) {
  const remove = useMutation({
    mutationFn: () => done(api.DELETE("/api/users/{user}", { params: { path: { user } } })),
    onSuccess: () => onDone(`Removed ${user}`),
  });
  return (
    <Confirm
      open
      danger
      title={`Remove ${user}?`}
      action={`Remove ${user}`}
      onClose={onClose}
      onConfirm={() => remove.mutate()}
      busy={remove.isPending}
      problem={remove.error}
    >
      <p>Their tokens stop working and their browsers are signed out at once.</p>
      <p>Their trainings, models, credits and messages stay. Running trainings continue and keep costing money.</p>
    </Confirm>
  );
}
