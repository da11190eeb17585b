import { useQueries } from "@tanstack/react-query";
import { artifactsQuery } from "~/api/queries";
import { Loading } from "~/design/Empty";
import { useAddressValue } from "~/frame/address";
import { SampleGrid } from "~/views/job/samples/SampleGrid";
import { StepSlider } from "~/views/job/samples/StepSlider";
import { nearestStep, type Step, samplesOf, stepText } from "~/views/job/samples/samples";
import styles from "./Compare.module.css";
import type { Run } from "./comparedJobs";

/** Samples in rows by prompt; one slider moves all runs, each to its own nearest step. */
export function ComparedSamples({ runs }: { readonly runs: readonly Run[] }) {
  const [wanted, setWanted] = useAddressValue("sample");
  const answers = useQueries({ queries: runs.map((run) => artifactsQuery(run.job.id)) });
  const columns = runs.flatMap((run, place) => {
    const artifacts = answers[place]?.data;
    return artifacts ? [{ run, samples: samplesOf(run.job.id, artifacts) }] : [];
  });
  const withSamples = columns.filter(({ samples }) => samples.steps.length > 0);
  const without = columns.filter((column) => !withSamples.includes(column));
  const steps = [...new Set(withSamples.flatMap(({ samples }) => samples.steps))].sort(byStep);
  const last = steps.findLast((step) => step !== null) ?? null;
  const number = wanted === null ? Number.NaN : Number(wanted);
  const step = Number.isFinite(number) ? number : last;
  return (
    <section className={styles.section} aria-labelledby="samples">
      <div className={styles.head}>
        <h2 id="samples">Samples</h2>
        {steps.length > 0 ? (
          <div className={styles.slider}>
            <StepSlider
              steps={steps}
              step={nearest(steps, step)}
              onChange={(chosen) => setWanted(chosen === last ? null : chosen)}
            />
          </div>
        ) : null}
      </div>
      {columns.length < runs.length && answers.some((one) => one.isLoading) ? (
        <Loading what="the samples" height={200} />
      ) : withSamples.length === 0 ? (
        <p className="quiet">None of these runs left samples.</p>
      ) : (
        <div className={styles.samples}>
          <SampleGrid
            named
            columns={withSamples.map(({ run, samples }) => {
              const own = nearestStep(samples, step);
              return { title: `${run.letter} ${run.job.name}, ${stepText(own)}`, samples, step: own };
            })}
          />
          {without.length > 0 ? (
            <p className="quiet">No samples: {without.map(({ run }) => `${run.letter} ${run.job.name}`).join(", ")}.</p>
          ) : null}
        </div>
      )}
    </section>
  );
}

function byStep(a: Step, b: Step): number {
  return (a ?? Number.POSITIVE_INFINITY) - (b ?? Number.POSITIVE_INFINITY);
}

function nearest(steps: readonly Step[], wanted: number | null): Step {
  if (wanted === null) return steps[0] ?? null;
  return steps.reduce<Step>((best, step) => (away(step, wanted) < away(best, wanted) ? step : best), steps[0] ?? null);
}

function away(step: Step, wanted: number): number {
  return step === null ? Number.POSITIVE_INFINITY : Math.abs(step - wanted);
}
