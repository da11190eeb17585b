import type { Job } from "~/api/documents";
import { Button } from "~/design/Button";
import { Empty } from "~/design/Empty";

interface Props {
  readonly job: Job;
  readonly mayTrain: boolean;
  readonly busy: boolean;
  readonly onAnalyse: () => void;
  readonly onLookNow: () => void;
}

const BEFORE_TRAINING = new Set(["QUEUED", "PROVISIONING", "TRANSFERRING_DATA"]);

/** In place of an analysis: why there is none, and what to do. */
export function NotAnalysed({ job, mayTrain, busy, onAnalyse, onLookNow }: Props) {
  if (BEFORE_TRAINING.has(job.state)) {
    return (
      <Empty title="The training has not started yet">
        <p>It is analysed when it ends: memory, speed and errors, with what to change in the next run.</p>
      </Empty>
    );
  }
  if (job.state === "EXECUTING") {
    return (
      <Empty title="The training runs">
        <p>It is analysed when it ends. You can also analyse what was measured so far.</p>
        <Button kind="main" onClick={onLookNow}>
          Analyse so far
        </Button>
      </Empty>
    );
  }
  if (job.state !== "ENDED") {
    return (
      <Empty title="The training is being analysed">
        <p>The result appears here in a moment.</p>
      </Empty>
    );
  }
  return (
    <Empty title="Not analysed yet">
      <p>The analysis judges memory, speed and errors by what was measured, and says what to change.</p>
      {mayTrain ? (
        <Button kind="main" busy={busy} onClick={onAnalyse}>
          Analyse now
        </Button>
      ) : (
        <p className="quiet">Analysing it needs the right to train.</p>
      )}
    </Empty>
  );
}
