/** From the form to the job: what is confirmed is exactly what was proposed, and nothing is proposed unseen. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { answer, api, done } from "~/api/client";
import type { Job, Proposal } from "~/api/documents";
import { asProblem } from "~/api/problem";
import { useSay } from "~/design/Toasts";

interface Steps {
  readonly propose: () => Promise<Proposal>;
  /** Forgets what was typed, once it has become a job. */
  readonly forget: () => void;
}

export function useProposing({ propose, forget }: Steps) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const say = useSay();
  const [proposal, setProposal] = useState<Proposal | null>(null);
  /** The one that expired before it was confirmed, so that the new price can be shown beside the old one. */
  const [former, setFormer] = useState<Proposal | null>(null);
  /** Who asked last: an answer that is no longer awaited must not open the question again. */
  const asked = useRef(0);
  const proposing = useMutation({ mutationFn: propose });
  const submitting = useMutation({
    mutationFn: submitted,
    onSuccess: (job) => {
      forget();
      say(`${job.name} is queued`);
      void queries.invalidateQueries({ queryKey: ["jobs"] });
      void navigate({ to: "/jobs/$job", params: { job: job.id } });
    },
  });
  const refused = submitting.error === null ? null : asProblem(submitting.error);
  const isGone = refused?.status === 404;

  function ask(before: Proposal | null): void {
    const mine = ++asked.current;
    proposing.mutate(undefined, {
      onSuccess: (found) => {
        if (mine !== asked.current) {
          withdraw(found.id);
          return;
        }
        submitting.reset();
        setFormer(before);
        setProposal(found);
      },
    });
  }

  return {
    proposal,
    former,
    isGone,
    /** Whether the last answer was lost: it may have been queued all the same. */
    isUnsure: refused !== null && (refused.isUnreachable || refused.status >= 500),
    proposing,
    submitting,
    begin: () => ask(null),
    again: () => ask(proposal),
    leave: () => {
      asked.current += 1;
      if (proposal !== null && !isGone) withdraw(proposal.id);
      setProposal(null);
      submitting.reset();
      proposing.reset();
    },
  };
}

/** The job that the proposal became, also where it became one already and only the answer was lost. */
async function submitted({ id, job }: Proposal): Promise<Job> {
  try {
    const accepted = await answer(api.POST("/api/proposals/{proposal}/submit", { params: { path: { proposal: id } } }));
    return accepted.job;
  } catch (error) {
    if (asProblem(error).status !== 404) throw error;
    return await answer(api.GET("/api/jobs/{job}", { params: { path: { job }, query: { exact: true } } })).catch(() => {
      throw error;
    });
  }
}

function withdraw(proposal: string): void {
  // It expires within the hour anyway; withdrawing only frees its packed dataset earlier.
  done(api.DELETE("/api/proposals/{proposal}", { params: { path: { proposal } } })).catch(() => undefined);
}
