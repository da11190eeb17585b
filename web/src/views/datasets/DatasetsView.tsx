import { useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { jobsQuery, sessionQuery } from "~/api/queries";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { useTitle } from "~/frame/title";
import styles from "./DatasetsView.module.css";
import { NewUpload } from "./NewUpload";
import { UploadSection } from "./UploadSection";
import { uploadsQuery } from "./upload/uploads";

const MOST_JOBS = 200;

/** What was uploaded, with its pictures, what is wrong with it, and who trains on it. */
export function DatasetsView() {
  useTitle("Datasets");
  const search: { upload?: string } = useSearch({ strict: false });
  const { data, error, refetch } = useQuery(uploadsQuery);
  const { data: jobs } = useQuery(jobsQuery({ ended: true, limit: MOST_JOBS }));
  const { data: session } = useQuery(sessionQuery);
  const mayTrain = session?.rights.includes("train") ?? false;
  return (
    <div className={styles.view}>
      <h1>Datasets</h1>
      {mayTrain ? <NewUpload /> : null}
      {error && !data ? <ProblemNote problem={error} onRetry={() => void refetch()} /> : null}
      {!data && !error ? <Loading what="the uploads" height={200} /> : null}
      {data && data.items.length === 0 ? (
        <Empty title="No dataset yet">
          <p>
            {mayTrain
              ? "Drop a folder above. It is checked while it arrives, and stays as long as it is used."
              : "Uploading one needs the right to train."}
          </p>
        </Empty>
      ) : null}
      {data?.items.map((upload) => (
        <UploadSection
          key={upload.id}
          upload={upload}
          jobs={jobs?.items.filter((job) => job.dataset.source.startsWith(upload.reference)) ?? []}
          mayTrain={mayTrain}
          isOpen={search.upload === upload.id}
        />
      ))}
    </div>
  );
}
