import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Job } from "~/api/documents";
import { artifactsQuery } from "~/api/queries";
import { Button } from "~/design/Button";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { useAddressValue } from "~/frame/address";
import { LargeSample } from "./LargeSample";
import { type SampleColumn, SampleGrid } from "./SampleGrid";
import styles from "./Samples.module.css";
import { StepSlider } from "./StepSlider";
import { nearestStep, type Prompt, type SampleSet, type Step, samplesOf, stepText } from "./samples";

const HEIGHT = 240;

export function Samples({ job }: { readonly job: Job }) {
  const { data: artifacts, error, refetch } = useQuery(artifactsQuery(job.id, { isRunning: job.state !== "ENDED" }));
  return (
    <section aria-labelledby="samples-title" className={styles.samples}>
      {error && !artifacts ? (
        <>
          <h2 id="samples-title">Samples</h2>
          <ProblemNote problem={error} onRetry={() => void refetch()} />
        </>
      ) : artifacts ? (
        <Shown job={job} samples={samplesOf(job.id, artifacts)} />
      ) : (
        <>
          <h2 id="samples-title">Samples</h2>
          <Loading what="the samples" height={HEIGHT} />
        </>
      )}
    </section>
  );
}

function Shown({ job, samples }: { readonly job: Job; readonly samples: SampleSet }) {
  const [wanted, setWanted] = useAddressValue("sample");
  const [other, setOther] = useAddressValue("beside");
  const [isHeld, setHeld] = useState(false);
  const [opened, setOpened] = useState<Prompt | null>(null);
  if (samples.steps.length === 0) return <NoSamples job={job} />;

  const step = nearestStep(samples, asNumber(wanted));
  const first = samples.steps[0] ?? null;
  const beside = other === null ? undefined : nearestStep(samples, asNumber(other));
  const columns = columnsOf(samples, isHeld ? first : step, isHeld ? undefined : beside);
  // The newest step is the default and stays so while the training makes more.
  const choose = (chosen: Step) => setWanted(chosen === samples.steps.at(-1) ? null : chosen);
  return (
    <>
      <div className={styles.head}>
        <h2 id="samples-title">Samples</h2>
        <StepSlider steps={samples.steps} step={step} onChange={choose} />
        {samples.steps.length > 1 ? (
          <>
            <Button
              aria-pressed={isHeld}
              onPointerDown={() => setHeld(true)}
              onPointerUp={() => setHeld(false)}
              onPointerLeave={() => setHeld(false)}
              onKeyDown={(event) => (event.key === " " || event.key === "Enter") && setHeld(true)}
              onKeyUp={() => setHeld(false)}
              onBlur={() => setHeld(false)}
            >
              Hold for {stepText(first)}
            </Button>
            <Beside samples={samples} chosen={beside} onChoose={setOther} />
          </>
        ) : null}
        <a href={`/compare?jobs=${encodeURIComponent(job.id)}`}>Compare with another run</a>
      </div>
      <SampleGrid columns={columns} onOpen={setOpened} />
      {opened ? (
        <LargeSample
          samples={samples}
          prompt={opened}
          step={step}
          onStep={choose}
          onPrompt={setOpened}
          onClose={() => setOpened(null)}
        />
      ) : null}
    </>
  );
}

interface BesideProps {
  readonly samples: SampleSet;
  readonly chosen: Step | undefined;
  readonly onChoose: (step: Step) => void;
}

function Beside({ samples, chosen, onChoose }: BesideProps) {
  return (
    <label className={styles.beside}>
      Side by side with{" "}
      <select
        value={chosen === undefined ? "" : String(chosen)}
        onChange={(event) => onChoose(event.target.value === "" ? null : Number(event.target.value))}
      >
        <option value="">nothing</option>
        {samples.steps
          .filter((step) => step !== null)
          .map((step) => (
            <option key={step} value={String(step)}>
              {stepText(step)}
            </option>
          ))}
      </select>
    </label>
  );
}

function NoSamples({ job }: { readonly job: Job }) {
  return (
    <>
      <h2 id="samples-title">Samples</h2>
      <Empty title={job.state === "ENDED" ? "This training left no samples" : "No samples yet"}>
        <p>
          {job.state === "ENDED"
            ? `${job.recipe} made none, or none was downloaded.`
            : `Pictures appear here once ${job.recipe} has made some and they are downloaded. Some recipes make none.`}
        </p>
      </Empty>
    </>
  );
}

function columnsOf(samples: SampleSet, step: Step, beside: Step | undefined): readonly SampleColumn[] {
  const shown = { title: stepText(step), samples, step };
  if (beside === undefined || beside === step) return [shown];
  return [{ title: stepText(beside), samples, step: beside }, shown];
}

function asNumber(text: string | null): number | null {
  const number = text === null ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : null;
}
