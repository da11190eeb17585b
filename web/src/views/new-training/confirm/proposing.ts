/** From the form to the job: what is confirmed is exactly what was proposed, and nothing is proposed unseen. */
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, done } from "~/api/client";
import type { Job, Proposal } from "~/api/documents";
import { asProblem } from "~/api/problem";

interface Steps {
  readonly propose: () => Promise<Proposal>;
  readonly onSubmitted: (job: Job, notes: readonly string[]) => void;
}

export function useProposing({ propose, onSubmitted }: Steps) {
  const [proposal, setProposal] = useState<Proposal | null>(null);
  /** The one that expired before it was confirmed, so that the new price can be shown beside the old one. */
  const [former, setFormer] = useState<Proposal | null>(null);
  const proposing = useMutation({ mutationFn: propose, onSuccess: setProposal });
  const submitting = useMutation({
    mutationFn: (id: string) =>
      answer(api.POST("/api/proposals/{proposal}/submit", { params: { path: { proposal: id } } })),
    onSuccess: ({ job, notes }) => onSubmitted(job, notes),
  });
  const isGone = submitting.error !== null && asProblem(submitting.error).status === 404;

  return {
    proposal,
    former,
    isGone,
    proposing,
    submitting,
    begin: () => {
      setFormer(null);
      submitting.reset();
      proposing.mutate();
    },
    again: () => {
      setFormer(proposal);
      submitting.reset();
      proposing.mutate();
    },
    leave: () => {
      if (proposal !== null && !isGone) withdraw(proposal.id);
      setProposal(null);
      submitting.reset();
      proposing.reset();
    },
  };
}

function withdraw(proposal: string): void {
  // It expires by itself within the hour; withdrawing only frees its packed dataset earlier.
  done(api.DELETE("/api/proposals/{proposal}", { params: { path: { proposal } } })).catch(() => undefined);
}
