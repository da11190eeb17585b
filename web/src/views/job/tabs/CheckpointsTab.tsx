import { useQuery } from "@tanstack/react-query";
import type { Artifact, Job } from "~/api/documents";
import { artifactsQuery, sessionQuery } from "~/api/queries";
import { Button } from "~/design/Button";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { Badge } from "~/design/StateMark";
import { Table } from "~/design/Table";
import { useSay } from "~/design/Toasts";
import { bytes, count, figure, UNKNOWN } from "~/text/format";
import { downloadAddress } from "../samples/samples";
import { bestOf, placesOf } from "./places";
import styles from "./Tab.module.css";

const FORMATS = ["csv", "json", "parquet", "db"] as const;

export function CheckpointsTab({ job }: { readonly job: Job }) {
  const { data: artifacts, error, refetch } = useQuery(artifactsQuery(job.id, { isRunning: job.state !== "ENDED" }));
  if (error && !artifacts) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  if (!artifacts) return <Loading what="the checkpoints" height={320} />;
  const checkpoints = artifacts.filter((one) => one.kind === "checkpoint");
  const others = artifacts.filter((one) => one.kind !== "checkpoint" && !(one.kind === "sample" && one.is_image));
  return (
    <div className={styles.tab}>
      {checkpoints.length === 0 ? <None job={job} /> : <Checkpoints job={job} checkpoints={checkpoints} />}
      <section className={styles.section}>
        <h3>What was measured</h3>
        <p className={styles.links}>
          {FORMATS.map((format) => (
            <a
              key={format}
              href={`/api/jobs/${encodeURIComponent(job.id)}/metrics/export?format=${format}&exact=true`}
              download
            >
              Download as {format}
            </a>
          ))}
        </p>
      </section>
      {others.length === 0 ? null : (
        <section className={styles.section}>
          <h3>Other files</h3>
          <ul className={styles.files}>
            {others.map((file) => (
              <li key={`${file.attempt} ${file.path}`}>
                <FileName job={job} file={file} /> <span className="quiet">{bytes(file.size)}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function None({ job }: { readonly job: Job }) {
  return (
    <Empty title={job.state === "ENDED" ? "This training left no checkpoint" : "No checkpoint yet"}>
      <p>
        {job.state === "ENDED"
          ? "It ended before the first one was saved, or none could be downloaded."
          : "The training saves one from time to time; it appears here as soon as the machine has it."}
      </p>
    </Empty>
  );
}

function Checkpoints({ job, checkpoints }: { readonly job: Job; readonly checkpoints: readonly Artifact[] }) {
  const best = bestOf(job, checkpoints);
  const sorted = checkpoints.toSorted((a, b) => b.attempt - a.attempt || order(b) - order(a));
  return (
    <Table label="Checkpoints">
      <thead>
        <tr>
          <th scope="col" data-figure>
            Step
          </th>
          <th scope="col">File</th>
          <th scope="col" data-figure>
            Loss
          </th>
          <th scope="col" data-figure>
            Size
          </th>
          <th scope="col">Where</th>
          <th scope="col">SHA-256</th>
          <th scope="col">
            <span className="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {sorted.map((one) => (
          <Row key={`${one.attempt} ${one.path}`} job={job} file={one} isBest={one === best} />
        ))}
      </tbody>
    </Table>
  );
}

function order(file: Artifact): number {
  return file.step ?? Number.POSITIVE_INFINITY;
}

function Row({ job, file, isBest }: { readonly job: Job; readonly file: Artifact; readonly isBest: boolean }) {
  // The file that a training ends with has no step in its name.
  const isLast = isBest && job.outcome === "COMPLETED";
  const step = file.step ?? (isBest ? job.model_step : null) ?? (isLast ? job.progress.step : null);
  const loss = file.loss ?? (step !== null && step === job.progress.step ? job.progress.loss : null);
  const places = placesOf(job, file, isBest);
  return (
    <tr>
      <td data-figure>{step === null || step === undefined ? "end" : count(step)}</td>
      <td>
        <code title={file.path}>{nameOf(file)}</code> {isBest ? <Badge tone="good">★ best</Badge> : null}
        {job.attempt > 1 ? <span className="quiet"> attempt {file.attempt}</span> : null}
      </td>
      <td data-figure>{figure(loss)}</td>
      <td data-figure>{bytes(file.size)}</td>
      <td>
        {places.join(", ")} <Verified file={file} />
      </td>
      <td>{file.sha256 ? <Hash sha256={file.sha256} /> : UNKNOWN}</td>
      <td>
        <span className={styles.links}>
          {file.is_available ? (
            <a href={addressOf(job, file)} download aria-label={`Download ${nameOf(file)}`}>
              Download
            </a>
          ) : null}
          {isBest ? <Resume job={job} file={file} /> : null}
        </span>
      </td>
    </tr>
  );
}

function Verified({ file }: { readonly file: Artifact }) {
  if (file.verified) return <Badge tone="good">✓ verified</Badge>;
  return file.is_available ? <Badge tone="attention">not verified</Badge> : null;
}

function Hash({ sha256 }: { readonly sha256: string }) {
  const say = useSay();
  const copy = () =>
    navigator.clipboard.writeText(sha256).then(
      () => say("Copied the SHA-256"),
      () => say(`The browser does not allow copying: ${sha256}`),
    );
  return (
    <Button
      kind="quiet"
      title={sha256}
      aria-label={`Copy the SHA-256 ${sha256.slice(0, 12)}…`}
      onClick={() => void copy()}
    >
      <code>{sha256.slice(0, 12)}…</code>
    </Button>
  );
}

function FileName({ job, file }: { readonly job: Job; readonly file: Artifact }) {
  if (!file.is_available) return <code title={file.path}>{nameOf(file)}</code>;
  return (
    <a href={addressOf(job, file)} download title={`Download ${file.path}`}>
      <code>{nameOf(file)}</code>
    </a>
  );
}

function nameOf(file: Artifact): string {
  return file.path.split("/").at(-1) ?? file.path;
}

function addressOf(job: Job, file: Artifact): string {
  return downloadAddress({ job: job.id, attempt: file.attempt, path: file.path });
}

/** A new job continues from the best checkpoint of an ended one, and from no other. */
function Resume({ job, file }: { readonly job: Job; readonly file: Artifact }) {
  const { data: session } = useQuery(sessionQuery);
  const isPossible = job.state === "ENDED" && file.verified && file.path.endsWith(".safetensors");
  if (!isPossible || !session?.rights.includes("train")) return null;
  return <a href={`/new?retry=${encodeURIComponent(job.id)}&resume=1`}>Resume from here</a>;
}
