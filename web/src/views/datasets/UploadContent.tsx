import { useQuery } from "@tanstack/react-query";
import type { Recipe, Upload } from "~/api/documents";
import { Button } from "~/design/Button";
import { ProblemNote } from "~/design/ProblemNote";
import { bytes, counted } from "~/text/format";
import { DropZone } from "./DropZone";
import { Pictures } from "./Pictures";
import { useLocalPictures, useStoredPictures } from "./pictures";
import { Report } from "./Report";
import { Sending } from "./Sending";
import styles from "./UploadContent.module.css";
import { expectedOf } from "./upload/expected";
import { checkQuery, uploaderOf, useUploader } from "./upload/uploads";

interface Props {
  readonly upload: Upload;
  /** Whose rules it is checked against; null: those that it began with. */
  readonly recipe: string | null;
  readonly trigger: string;
  readonly rules?: Recipe["dataset"];
  readonly mayTrain: boolean;
}

/** What is in an upload: its way here, what a check says, and its pictures with captions. */
export function UploadContent({ upload, recipe, trigger, rules, mayTrain }: Props) {
  const sending = useUploader(upload.id);
  const isMoving = sending.state !== "idle" && sending.state !== "done";
  const missing = isMoving ? null : missingOf(upload, sending.state === "done");
  const isWhole = !isMoving && missing === null && (upload.complete || sending.state === "done");
  const check = useQuery({
    ...checkQuery(upload.id, recipe, trigger.trim() || null),
    enabled: isWhole && mayTrain && upload.complete,
  });
  const local = useLocalPictures(sending.files);
  const stored = useStoredPictures(upload.id, sending.files.length === 0 && upload.files > 0);
  const pictures = local.length > 0 ? local : stored.pictures;
  const problems = check.data?.problems ?? sending.files.flatMap((file) => file.problems);
  return (
    <div className={styles.content}>
      <Sending upload={upload.id} sending={sending} />
      {missing && mayTrain ? (
        <DropZone title={missing} onDropped={(dropped) => uploaderOf(upload.id).add(dropped)}>
          <p className="quiet">Choose the same folder or files again: what has arrived is not sent twice.</p>
        </DropZone>
      ) : null}
      {check.error ? <ProblemNote problem={check.error} onRetry={() => void check.refetch()} /> : null}
      {check.isFetching && !check.data ? <p role="status">Checking the files…</p> : null}
      {check.data ? (
        <div className={styles.line}>
          <Report report={check.data} hasPictures={pictures.length > 0} />
          <Button busy={check.isFetching} onClick={() => void check.refetch()}>
            Check again
          </Button>
        </div>
      ) : null}
      {stored.error ? <ProblemNote problem={stored.error} /> : null}
      {pictures.length > 0 ? (
        <Pictures
          pictures={pictures}
          total={local.length > 0 ? undefined : check.data?.images}
          onMore={local.length > 0 ? undefined : stored.more}
          problems={problems}
          trigger={trigger}
          usesCaptions={rules?.captions !== "none" && rules?.kind !== "text"}
        />
      ) : null}
    </div>
  );
}

/** What is still to be sent, as a sentence; null: nothing. */
function missingOf(upload: Upload, isSent: boolean): string | null {
  if (isSent) return null;
  const expected = expectedOf(upload.id);
  if (expected && (upload.files < expected.files || upload.bytes < expected.bytes)) {
    const arrived = `${upload.files} of ${counted(expected.files, "file")}`;
    return `${arrived} have begun to arrive (${bytes(upload.bytes)} of ${bytes(expected.bytes)}).`;
  }
  if (upload.complete) return null;
  return upload.files === 0 ? "Nothing has arrived yet." : "Some files have not arrived as a whole.";
}
