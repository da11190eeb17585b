import { useState } from "react";
import type { Analysis, Job } from "~/api/documents";
import { Button } from "~/design/Button";
import { Dialog } from "~/design/Dialog";
import { ApplyDialog } from "./ApplyDialog";

interface Props {
  readonly job: Job;
  /** The stored analysis: a new job follows that one. */
  readonly analysis: Analysis | undefined;
  readonly mayTrain: boolean;
}

/** The button that begins a new job with the recommended settings. */
export function ApplySettings({ job, analysis, mayTrain }: Props) {
  const [isOpen, setOpen] = useState(false);
  if (!analysis || analysis.recommendations.length === 0) return null;
  return (
    <>
      <Button
        kind="main"
        disabled={!mayTrain}
        title={mayTrain ? undefined : "This needs the right to train"}
        onClick={() => setOpen(true)}
      >
        Apply recommended settings
      </Button>
      <Dialog open={isOpen} onClose={() => setOpen(false)} title="Apply recommended settings" wide>
        <ApplyDialog job={job} analysis={analysis} onClose={() => setOpen(false)} />
      </Dialog>
    </>
  );
}
