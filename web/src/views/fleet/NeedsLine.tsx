import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "~/api/client";
import type { OverviewRow } from "~/api/documents";
import { Button } from "~/design/Button";
import { Confirm } from "~/design/Dialog";
import { useSay } from "~/design/Toasts";
import { When } from "~/design/When";
import { dollars } from "~/text/format";
import styles from "./Fleet.module.css";

interface Act {
  readonly verb: "stop" | "cancel";
  readonly button: string;
  /** What happens, and what is lost. */
  readonly warning: (row: OverviewRow) => string;
}

const STOP: Act = {
  verb: "stop",
  button: "Stop now",
  warning: () => "The training ends. Its best checkpoint is downloaded, then the machine is released.",
};
const CANCEL: Act = {
  verb: "cancel",
  button: "Cancel it",
  warning: (row) =>
    row.price_per_hour_usd === null
      ? "It no longer waits for a machine. Nothing was rented, so nothing is lost."
      : `Its machine is released at once and nothing is kept. It has cost ${dollars(row.cost_usd)} so far.`,
};
const FETCH: Act = {
  verb: "stop",
  button: "Fetch the model",
  warning: () => "The stopped machine is started once more to download the model. It bills while it runs.",
};
const GIVE_UP: Act = {
  verb: "cancel",
  button: "Give it up",
  warning: () => "The machine is destroyed, and with it the only copy of the model.",
};

/** What a person can do about a job, by why it needs one. */
const ACTS: Readonly<Record<string, readonly Act[]>> = {
  stall: [STOP],
  parked: [FETCH, GIVE_UP],
  waiting_for_offer: [CANCEL],
  provisioning: [CANCEL],
  soft_limit: [STOP],
  daily_cap: [CANCEL],
};

/** Why a job needs a person, with what to do about it beside it. */
export function NeedsLine({ row, mayTrain }: { readonly row: OverviewRow; readonly mayTrain: boolean }) {
  const [asked, setAsked] = useState<Act | null>(null);
  const queries = useQueryClient();
  const say = useSay();
  const send = useMutation({
    mutationFn: ({ verb }: Act) =>
      answer(api.POST(`/api/jobs/{job}/${verb}`, { params: { path: { job: row.id }, query: { exact: true } } })),
    onSuccess: (wanted) => {
      say(`${row.name}: ${wanted.note}`);
      setAsked(null);
      void queries.invalidateQueries({ queryKey: ["overview"] });
      void queries.invalidateQueries({ queryKey: ["job", row.id] });
    },
  });
  if (!row.needs) return null;
  const acts = mayTrain && !row.ended_at ? (ACTS[row.needs.kind] ?? []) : [];
  return (
    <div className={styles.needs}>
      <span className={styles.sentence}>
        <span aria-hidden>▲ </span>
        {row.needs.sentence}
        {row.needs.since ? (
          <span className="quiet">
            {" "}
            <When at={row.needs.since} />
          </span>
        ) : null}
      </span>
      {acts.map((act) => (
        <Button
          key={act.button}
          kind={act.verb === "cancel" ? "danger" : "plain"}
          onClick={() => setAsked(act)}
          aria-label={`${act.button}: ${row.name}`}
        >
          {act.button}
        </Button>
      ))}
      {asked ? (
        <Confirm
          open
          title={`${asked.button}: ${row.name}?`}
          action={asked.button}
          danger={asked.verb === "cancel"}
          busy={send.isPending}
          problem={send.error}
          onClose={() => {
            send.reset();
            setAsked(null);
          }}
          onConfirm={() => send.mutate(asked)}
        >
          <p>{asked.warning(row)}</p>
        </Confirm>
      ) : null}
    </div>
  );
}
