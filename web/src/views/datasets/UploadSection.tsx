import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useId, useState } from "react";
import { api, done } from "~/api/client";
import type { Job, Upload } from "~/api/documents";
import { Button } from "~/design/Button";
import { Confirm } from "~/design/Dialog";
import { Badge } from "~/design/StateMark";
import { useSay } from "~/design/Toasts";
import { When } from "~/design/When";
import { bytes, counted } from "~/text/format";
import { UploadContent } from "./UploadContent";
import styles from "./UploadSection.module.css";
import { expectedOf, remember } from "./upload/expected";
import { forgetUploader, useUploader } from "./upload/uploads";

interface Props {
  readonly upload: Upload;
  /** Trainings on it. */
  readonly jobs: readonly Job[];
  readonly mayTrain: boolean;
  readonly isOpen: boolean;
}

/** One upload: a line, and what is in it when it is opened. */
export function UploadSection({ upload, jobs, mayTrain, isOpen }: Props) {
  const navigate = useNavigate();
  const id = useId();
  const toggle = () =>
    void navigate({ to: "/datasets", search: (isOpen ? {} : { upload: upload.id }) as never, replace: true });
  return (
    <section className={styles.upload} aria-labelledby={id}>
      <div className={styles.head}>
        <h2 id={id}>{upload.name}</h2>
        <UploadState upload={upload} />
        <span className="quiet">
          {counted(upload.files, "file")} · {bytes(upload.bytes)} · begun <When at={upload.created_at} /> · removed{" "}
          <When at={upload.expires_at} /> if unused
        </span>
        <div className={styles.actions}>
          <Button onClick={toggle} aria-expanded={isOpen}>
            {isOpen ? "Close" : upload.complete ? "Pictures and check" : "Continue"}
            <span className="visually-hidden"> {upload.name}</span>
          </Button>
          {mayTrain ? (
            <>
              <Button onClick={() => void navigate({ to: "/new", search: trainingOf(upload) as never })}>
                Train with it
              </Button>
              <Delete upload={upload} jobs={jobs} />
            </>
          ) : null}
        </div>
      </div>
      {jobs.length > 0 ? (
        <p className="quiet">
          Trained on by{" "}
          {jobs.map((job, place) => (
            <span key={job.id}>
              {place > 0 ? ", " : ""}
              <Link to="/jobs/$job" params={{ job: job.id }}>
                {job.name}
              </Link>
            </span>
          ))}
        </p>
      ) : null}
      {isOpen ? (
        <UploadContent
          upload={upload}
          recipe={upload.recipe ?? null}
          trigger={upload.trigger ?? ""}
          mayTrain={mayTrain}
        />
      ) : null}
    </section>
  );
}

/** With the recipe that it was uploaded for, if there was one. */
function trainingOf({ reference, recipe }: Upload): Record<string, string> {
  return { dataset: reference, ...(recipe ? { recipe } : {}) };
}

function UploadState({ upload }: { readonly upload: Upload }) {
  const sending = useUploader(upload.id);
  if (sending.state === "sending") return <Badge tone="running">● Arriving</Badge>;
  if (sending.state === "lost") return <Badge tone="attention">▲ No connection</Badge>;
  if (sending.state === "paused" || sending.state === "failed") return <Badge tone="attention">▲ Paused</Badge>;
  const expected = expectedOf(upload.id);
  const isShort = expected !== null && upload.files < expected.files && sending.state !== "done";
  if (!upload.complete || isShort) return <Badge tone="attention">▲ Incomplete</Badge>;
  return <Badge tone="good">✓ Complete</Badge>;
}

function Delete({ upload, jobs }: Pick<Props, "upload" | "jobs">) {
  const [isAsked, setAsked] = useState(false);
  const queries = useQueryClient();
  const say = useSay();
  const deleting = useMutation({
    mutationFn: () => done(api.DELETE("/api/datasets/{upload}", { params: { path: { upload: upload.id } } })),
    onSuccess: async () => {
      forgetUploader(upload.id);
      remember(upload.id, null);
      setAsked(false);
      say(`Deleted ${upload.name}`);
      await queries.invalidateQueries({ queryKey: ["datasets"] });
    },
  });
  return (
    <>
      <Button kind="danger" onClick={() => setAsked(true)}>
        Delete<span className="visually-hidden"> {upload.name}</span>
      </Button>
      <Confirm
        open={isAsked}
        onClose={() => setAsked(false)}
        title={`Delete ${upload.name}?`}
        action="Delete it"
        danger
        busy={deleting.isPending}
        problem={deleting.error}
        onConfirm={() => deleting.mutate()}
      >
        <p>
          {counted(upload.files, "file")} ({bytes(upload.bytes)}) are removed from the server and cannot be brought
          back.
        </p>
        {jobs.length > 0 ? (
          <p>{counted(jobs.length, "training")} on it keep their own copy and can still be run again.</p>
        ) : null}
      </Confirm>
    </>
  );
}
