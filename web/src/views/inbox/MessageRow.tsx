import { Link } from "@tanstack/react-router";
import type { Message } from "~/api/documents";
import { Button } from "~/design/Button";
import { Badge } from "~/design/StateMark";
import { When } from "~/design/When";
import { kindOf } from "./kinds";
import styles from "./MessageRow.module.css";

interface Props {
  readonly message: Message;
  readonly isUnread: boolean;
  /** Only the first line, for the list below the bell. */
  readonly short?: boolean;
  readonly onOpen?: () => void;
  readonly onRead?: () => void;
}

/** One message: what it is about, what it says, when, and the way to its training. */
export function MessageRow({ message, isUnread, short = false, onOpen, onRead }: Props) {
  const kind = kindOf(message);
  const [first = "", ...rest] = message.text.split("\n").filter((line) => line.trim() !== "");
  return (
    <li className={styles.row} data-unread={isUnread || undefined}>
      <span className={styles.dot}>{isUnread ? <span className="visually-hidden">Unread:</span> : null}</span>
      <div className={styles.body}>
        <div className={styles.top}>
          <Badge tone={kind.tone}>{kind.word}</Badge>
          <span className={styles.first}>{withoutPicture(first)}</span>
          <span className={styles.when}>
            <When at={new Date(message.at * 1000).toISOString()} />
          </span>
        </div>
        <div className={styles.facts}>
          {(short ? rest.slice(0, 2) : rest).map((line, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a message do not move
            <span key={place}>{line}</span>
          ))}
        </div>
        <div className={styles.actions}>
          {message.job_id ? (
            <Link to="/jobs/$job" params={{ job: message.job_id }} onClick={onOpen} className={styles.link}>
              Open the training
            </Link>
          ) : null}
          {isUnread && onRead ? (
            <Button kind="quiet" onClick={onRead}>
              Mark as read up to here
            </Button>
          ) : null}
        </div>
      </div>
    </li>
  );
}

/** Chats begin a message with a picture; here the kind stands before it. */
function withoutPicture(line: string): string {
  return line.replace(/^(\p{Extended_Pictographic}\uFE0F?\s*)+/u, "");
}
