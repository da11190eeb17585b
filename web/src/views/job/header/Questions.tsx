/** What is asked before a training is stopped, cancelled or removed: what is kept, and what is lost. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useId, useState } from "react";
import { api, done } from "~/api/client";
import type { Job } from "~/api/documents";
import { Confirm } from "~/design/Dialog";
import { useSay } from "~/design/Toasts";
import { bytes, count, counted, dollars } from "~/text/format";
import { useRequest } from "./useRequest";

export type Question = "stop" | "cancel" | "remove";

interface Props {
  readonly job: Job;
  readonly question: Question | null;
  readonly onClose: () => void;
}

export function Questions(props: Props) {
  if (props.question === "stop") return <StopQuestion {...props} />;
  if (props.question === "cancel") return <CancelQuestion {...props} />;
  if (props.question === "remove") return <RemoveQuestion {...props} />;
  return null;
}

function StopQuestion({ job, onClose }: Props) {
  const request = useRequest(job);
  const last = lastCheckpoint(job);
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Stop ${job.name}?`}
      action="Stop and keep the model"
      busy={request.isPending}
      problem={request.error}
      onConfirm={() => request.mutate("stop", { onSuccess: onClose })}
    >
      {job.state === "EXECUTING" ? (
        <>
          <p>
            The training saves once more if its trainer can, the best checkpoint is fetched, and the machine is
            released. It ends as incomplete at {where(job)}.
          </p>
          <p>{last ? `Kept at least: ${last}.` : "There is no checkpoint yet: only what it saves now is kept."}</p>
        </>
      ) : (
        <p>The training has not begun, so there is nothing to keep: this cancels it and releases its machine.</p>
      )}
      <p className="quiet">It has cost {dollars(job.cost_usd)} so far. Stopping cannot be undone.</p>
    </Confirm>
  );
}

function CancelQuestion({ job, onClose }: Props) {
  const request = useRequest(job);
  const id = useId();
  const [keep, setKeep] = useState(true);
  const last = lastCheckpoint(job);
  return (
    <Confirm
      open
      danger
      onClose={onClose}
      title={`Cancel ${job.name}?`}
      action={last && keep ? "Fetch it, then cancel" : "Cancel and discard"}
      busy={request.isPending}
      problem={request.error}
      onConfirm={() => request.mutate(last && keep ? "cancel-keep" : "cancel", { onSuccess: onClose })}
    >
      <p>
        The machine is released and the training is given up at {where(job)}. {dollars(job.cost_usd)} were spent on it.
      </p>
      {last ? (
        <>
          <p>{keep ? `Fetched first: ${last}.` : `Lost, unless it was already downloaded: ${last}.`}</p>
          <p>
            <input id={id} type="checkbox" checked={keep} onChange={({ target }) => setKeep(target.checked)} />{" "}
            <label htmlFor={id}>Download the best checkpoint first</label>
          </p>
        </>
      ) : (
        <p>It has no checkpoint yet: everything that was trained is lost.</p>
      )}
    </Confirm>
  );
}

function RemoveQuestion({ job, onClose }: Props) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const say = useSay();
  const remove = useMutation({
    mutationFn: () => done(api.DELETE("/api/jobs/{job}", { params: { path: { job: job.id } } })),
    onSuccess: () => {
      say(`Removed ${job.name}`);
      void navigate({ to: "/" });
      void queries.invalidateQueries({ queryKey: ["jobs"] });
    },
  });
  const size = job.checkpoints.reduce((sum, file) => sum + file.size, 0);
  return (
    <Confirm
      open
      danger
      onClose={onClose}
      title={`Remove ${job.name}?`}
      action="Remove permanently"
      busy={remove.isPending}
      problem={remove.error}
      onConfirm={() => remove.mutate()}
    >
      <p>
        Its log, charts and {counted(job.checkpoints.length, "file")} ({bytes(size)}) on the server are deleted
        {job.catalogue ? `, the model ${job.catalogue.slug} among them` : ""}. Copies in a bucket or on the Hub stay.
        This cannot be undone.
      </p>
    </Confirm>
  );
}

function where({ progress }: Job): string {
  if (progress.step === null || progress.step === undefined) return "its beginning";
  return `step ${count(progress.step)} of ${count(progress.total_steps)}`;
}

/** `the checkpoint of step 400 (12.1 MB)`; null if there is none. */
function lastCheckpoint(job: Job): string | null {
  const files = job.checkpoints.filter(({ kind }) => kind === "checkpoint" || kind === "model");
  const last = files.reduce<(typeof files)[number] | null>(
    (best, file) => (best === null || (file.step ?? 0) >= (best.step ?? 0) ? file : best),
    null,
  );
  if (last === null) return null;
  return `the checkpoint of step ${count(last.step)} (${bytes(last.size)})`;
}
