/** An upload on its way: in total and by file, with pause and continue. */
import { Button } from "~/design/Button";
import { ProblemNote } from "~/design/ProblemNote";
import { Progress } from "~/design/Progress";
import { bytes, counted } from "~/text/format";
import styles from "./Sending.module.css";
import type { FileState, Snapshot } from "./upload/uploader";
import { uploaderOf } from "./upload/uploads";

const MOST_LISTED = 200;

export function Sending({ upload, sending }: { readonly upload: string; readonly sending: Snapshot }) {
  const { state, files, leftOut, received, problem } = sending;
  if (state === "idle" && files.length === 0) return null;
  const arrived = files.filter((file) => file.state === "done").length;
  const refused = files.filter((file) => file.state === "refused");
  const percent = sending.bytes === 0 ? 0 : (received / sending.bytes) * 100;
  return (
    <div className={styles.sending}>
      <div className={styles.line}>
        <span role="status">{words(sending)}</span>
        <span className="quiet">
          {arrived} of {counted(files.length - refused.length, "file")}, {bytes(received)} of {bytes(sending.bytes)}
        </span>
        {state === "sending" || state === "lost" ? (
          <Button onClick={() => uploaderOf(upload).pause()}>Pause</Button>
        ) : null}
        {state === "paused" || state === "failed" ? (
          <Button kind="main" onClick={() => void uploaderOf(upload).continue()}>
            Continue
          </Button>
        ) : null}
      </div>
      {state === "done" ? null : <Progress percent={percent} label="Upload" />}
      {problem ? <ProblemNote problem={problem} /> : null}
      {leftOut.length > 0 || refused.length > 0 ? (
        <details>
          <summary>
            {counted(leftOut.length + refused.length, "file")} left out
            {leftOut.length > 0 ? ": hidden, or a file manager’s own" : ""}
          </summary>
          <ul className={styles.names}>
            {leftOut.slice(0, MOST_LISTED).map((one) => (
              <li key={one.path}>
                <code>{one.path}</code>: {one.why}
              </li>
            ))}
            {refused.slice(0, MOST_LISTED).map((one) => (
              <li key={one.path}>{one.refusal}</li>
            ))}
          </ul>
        </details>
      ) : null}
      {state === "done" ? null : <Files files={files} />}
    </div>
  );
}

function words({ state }: Snapshot): string {
  if (state === "lost") return "The server does not answer. The upload continues when it does.";
  if (state === "paused") return "Paused. What has arrived stays.";
  if (state === "failed") return "The server refused a file.";
  return state === "done" ? "Everything has arrived." : "Sending";
}

function Files({ files }: { readonly files: readonly FileState[] }) {
  const open = files.filter((file) => file.state === "waiting" || file.state === "sending");
  if (open.length === 0) return null;
  const moving = [...open].sort((one, other) => Number(other.state === "sending") - Number(one.state === "sending"));
  return (
    <details>
      <summary>{counted(open.length, "file")} to go</summary>
      <ul className={styles.names}>
        {moving.slice(0, MOST_LISTED).map((file) => (
          <li key={file.path} className={styles.file}>
            <code>{file.path}</code>
            <Progress percent={file.size === 0 ? 0 : (file.received / file.size) * 100} label={file.path} />
          </li>
        ))}
        {moving.length > MOST_LISTED ? <li>… and {counted(moving.length - MOST_LISTED, "more", "more")}</li> : null}
      </ul>
    </details>
  );
}
