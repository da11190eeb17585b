import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Job, Model } from "~/api/documents";
import { CopyText } from "~/design/CopyText";
import { bytes, count, counted, dollars, duration, figure, UNKNOWN } from "~/text/format";
import styles from "./ModelFacts.module.css";
import { trainedOf } from "./models";

/** What the model is and how it was trained. The cost and the time are the job's; a removed job leaves neither. */
export function ModelFacts({ model, job }: { readonly model: Model; readonly job: Job | null }) {
  const trained = trainedOf(model);
  const steps =
    trained.targetSteps && trained.targetSteps !== trained.steps
      ? `${count(trained.steps)} of ${count(trained.targetSteps)}`
      : count(trained.steps);
  return (
    <section aria-labelledby="model-facts">
      <h2 id="model-facts">What it is</h2>
      <dl className={styles.facts}>
        <Fact name="Trigger word">
          {model.trigger ? <CopyText text={model.trigger} what="trigger word" /> : "none: it works without one"}
        </Fact>
        <Fact name="Base model">{model.base_model ?? model.family ?? UNKNOWN}</Fact>
        <Fact name="Recipe">
          <Link to="/recipes/$recipe" params={{ recipe: model.recipe }}>
            {model.recipe}
          </Link>
        </Fact>
        {trained.framework ? <Fact name="Trainer">{trained.framework}</Fact> : null}
        <Fact name="Dataset">
          {trained.images ? counted(trained.images, "item") : UNKNOWN}
          {model.dataset_sha256 ? <span className="quiet mono"> {model.dataset_sha256.slice(0, 12)}</span> : null}
        </Fact>
        <Fact name="Steps">{steps}</Fact>
        <Fact name="Loss">
          {figure(trained.lastLoss)}
          {trained.firstLoss ? <span className="quiet"> from {figure(trained.firstLoss)} at first</span> : null}
        </Fact>
        {job ? (
          <>
            <Fact name="Cost">
              {dollars(job.cost_usd)}
              <span className="quiet"> quoted {dollars(job.quote.cost_usd.expected)}</span>
            </Fact>
            <Fact name="Time rented">
              {duration(job.used.rented_hours * 3600)}
              {job.gpus ? <span className="quiet"> on {job.gpus}</span> : null}
            </Fact>
          </>
        ) : (
          <Fact name="Training">was removed; the model stays</Fact>
        )}
        <Fact name="File">
          <span className={styles.long}>{model.file_name}</span> <span className="quiet">{bytes(model.size)}</span>
        </Fact>
        <Fact name="SHA-256">
          <CopyText text={model.sha256} what="SHA-256" />
        </Fact>
      </dl>
    </section>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div className={styles.fact}>
      <dt className="quiet">{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
