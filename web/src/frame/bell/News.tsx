import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import type { Message } from "~/api/documents";
import { Button } from "~/design/Button";
import { MessageRow } from "~/views/inbox/MessageRow";
import { useMarkRead } from "~/views/inbox/useMarkRead";
import styles from "./Bell.module.css";

interface Props {
  /** Oldest first. */
  readonly messages: readonly Message[];
  readonly isUnread: (message: Message) => boolean;
  readonly unread: number;
  readonly onClose: () => void;
}

/** The newest messages, below the bell. */
export default function News({ messages, isUnread, unread, onClose }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const markRead = useMarkRead();
  const newest = messages[messages.length - 1];

  useEffect(() => {
    box.current?.focus();
    const onPress = (event: PointerEvent) => {
      if (event.target instanceof Node && !box.current?.parentElement?.contains(event.target)) onClose();
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape") onClose();
    };
    document.addEventListener("pointerdown", onPress);
    document.addEventListener("keydown", onKey);
    return () => {
      document.removeEventListener("pointerdown", onPress);
      document.removeEventListener("keydown", onKey);
    };
  });

  return (
    <div ref={box} className={styles.news} role="dialog" aria-label="Newest messages" tabIndex={-1}>
      <div className={styles.head}>
        <h2>Inbox</h2>
        {unread > 0 && newest ? (
          <Button kind="quiet" onClick={() => markRead(newest.id)}>
            Mark all as read
          </Button>
        ) : null}
      </div>
      {messages.length === 0 ? <p className="quiet">No messages yet. News of your trainings arrives here.</p> : null}
      <ul>
        {[...messages].reverse().map((message) => (
          <MessageRow key={message.id} message={message} isUnread={isUnread(message)} short onOpen={onClose} />
        ))}
      </ul>
      <div className={styles.foot}>
        <Link to="/inbox" onClick={onClose}>
          All messages
        </Link>
      </div>
    </div>
  );
}
