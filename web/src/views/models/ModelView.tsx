import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import type { Model } from "~/api/documents";
import { artifactsQuery, jobQuery, sessionQuery } from "~/api/queries";
import { buttonClass } from "~/design/Button";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { Badge } from "~/design/StateMark";
import { When } from "~/design/When";
import { useTitle } from "~/frame/title";
import { bytes } from "~/text/format";
import { SampleGrid } from "~/views/job/samples/SampleGrid";
import { nearestStep, samplesOf, stepText } from "~/views/job/samples/samples";
import { ModelFacts } from "./ModelFacts";
import { ModelPlaces } from "./ModelPlaces";
import styles from "./ModelView.module.css";
import { Parameters } from "./Parameters";
import { modelQuery } from "./queries";

/** One model: what it is, how it came about, what it makes, where it lies. */
export function ModelView() {
  const { model: reference } = useParams({ strict: false });
  const { data: model, error, refetch } = useQuery(modelQuery(reference ?? ""));
  useTitle(model?.name ?? "Model");
  if (error && !model) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  if (!model) return <Loading what="the model" height={480} />;
  return <Shown model={model} />;
}

function Shown({ model }: { readonly model: Model }) {
  const { data: session } = useQuery(sessionQuery);
  // A model stays when its job is removed; then there is nothing to link to.
  const { data: job } = useQuery({ ...jobQuery(model.job_id), retry: false, refetchInterval: false });
  const mayTrain = session?.rights.includes("train") ?? false;
  const file = `/api/models/${encodeURIComponent(model.slug)}/file`;
  return (
    <>
      <div className={styles.head}>
        <div>
          <h1>{model.name}</h1>
          <p className="quiet">
            {model.recipe}, made <When at={model.created_at} />{" "}
            {model.complete ? null : <Badge tone="attention">◧ stopped early, best checkpoint kept</Badge>}
          </p>
        </div>
        <div className={styles.actions}>
          {job ? (
            <Link to="/jobs/$job" params={{ job: job.id }} className={buttonClass()}>
              Open its training
            </Link>
          ) : null}
          {job && mayTrain ? (
            <Link to="/new" search={{ retry: job.id } as never} className={buttonClass()}>
              Train again
            </Link>
          ) : null}
          {(model.places ?? []).length > 0 ? (
            <a href={file} download={model.file_name} className={buttonClass("main")}>
              Download {bytes(model.size)}
            </a>
          ) : null}
        </div>
      </div>
      <div className={styles.columns}>
        <div className={styles.column}>
          <ModelFacts model={model} job={job ?? null} />
          <ModelPlaces model={model} mayPublish={mayTrain} />
        </div>
        <div className={styles.column}>
          {job ? <ModelSamples model={model} /> : null}
          <Parameters model={model} />
        </div>
      </div>
    </>
  );
}

function ModelSamples({ model }: { readonly model: Model }) {
  const { data: artifacts, error } = useQuery({ ...artifactsQuery(model.job_id), retry: false });
  if (error) return <ProblemNote problem={error} />;
  const samples = artifacts ? samplesOf(model.job_id, artifacts) : null;
  const step = samples ? nearestStep(samples, null) : null;
  return (
    <section aria-labelledby="model-samples">
      <h2 id="model-samples">Samples</h2>
      {samples === null ? <Loading what="the samples" height={240} /> : null}
      {samples && samples.steps.length === 0 ? <p className="quiet">Its training made no sample pictures.</p> : null}
      {samples && samples.steps.length > 0 ? (
        <>
          <p className="quiet">Made at {stepText(step)}.</p>
          <SampleGrid columns={[{ title: stepText(step), samples, step }]} />
          <Link to="/jobs/$job" params={{ job: model.job_id }}>
            See the samples of every step
          </Link>
        </>
      ) : null}
    </section>
  );
}
