import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "~/api/client";
import { Confirm } from "~/design/Dialog";
import { Field } from "~/design/Field";
import { useSay } from "~/design/Toasts";
import { credits } from "./amounts";

/** Gives back to its owner what a training was charged. */
export function RefundJob({ points, onClose }: { readonly points: number | null; readonly onClose: () => void }) {
  const queries = useQueryClient();
  const say = useSay();
  const [job, setJob] = useState("");
  const [reason, setReason] = useState("");
  const [isTried, setTried] = useState(false);
  const missing = (text: string) => (isTried && !text.trim() ? "Required." : null);
  const refund = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/jobs/{job}/refunds", {
          params: { path: { job: job.trim() } },
          body: { reason: reason.trim() },
        }),
      ),
    onSuccess: (refunded) => {
      say(`Refunded ${credits(refunded.refunded_micros, points)} for ${refunded.job}`);
      void queries.invalidateQueries({ queryKey: ["credits"] });
      onClose();
    },
  });
  return (
    <Confirm
      open
      title="Refund a training"
      action="Refund all that was charged"
      onClose={onClose}
      onConfirm={() => {
        setTried(true);
        if (job.trim() && reason.trim()) refund.mutate();
      }}
      busy={refund.isPending}
      problem={refund.error}
    >
      <p>Its owner gets back what was charged and not refunded yet. You still pay for the machine.</p>
      <Field label="Training" help="Its id or its name." problem={missing(job)}>
        {(control) => (
          <input {...control} value={job} onChange={(event) => setJob(event.target.value)} maxLength={200} />
        )}
      </Field>
      <Field label="Reason" help="Shown in the statement." problem={missing(reason)}>
        {(control) => (
          <input {...control} value={reason} onChange={(event) => setReason(event.target.value)} maxLength={200} />
        )}
      </Field>
    </Confirm>
  );
}
