/** How many messages are unread, and the newest of them on a click. */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useRef, useState } from "react";
import { isUnread, newsQuery, useReadUpTo } from "~/api/inbox";
import { counted } from "~/text/format";
import styles from "./Bell.module.css";

const News = lazy(() => import("~/frame/bell/News"));

export function Bell() {
  const { data } = useQuery(newsQuery);
  const readUpTo = useReadUpTo();
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const messages = data?.messages ?? [];
  const newest = messages[messages.length - 1];
  // The server's figure also counts older messages; it is only wrong while it has not heard that all were read.
  const unread = newest !== undefined && newest.id <= readUpTo ? 0 : (data?.unread ?? 0);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <span className={styles.place}>
      <button
        ref={button}
        type="button"
        className={styles.bell}
        aria-label={unread === 0 ? "Inbox, nothing unread" : `Inbox, ${counted(unread, "unread message")}`}
        aria-expanded={isOpen}
        aria-haspopup="dialog"
        onClick={() => setOpen(!isOpen)}
      >
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
          <path
            d="M3 11.5h10l-1.2-1.8V7a3.8 3.8 0 0 0-7.6 0v2.7zM6.5 13.5a1.6 1.6 0 0 0 3 0"
            fill="none"
            stroke="currentColor"
            strokeWidth="1.3"
            strokeLinejoin="round"
          />
        </svg>
        {unread > 0 ? (
          <span className={styles.count} aria-hidden>
            {unread > 99 ? "99+" : unread}
          </span>
        ) : null}
      </button>
      <span className="visually-hidden" role="status">
        {unread === 0 ? "" : counted(unread, "unread message")}
      </span>
      {isOpen ? (
        <Suspense fallback={null}>
          <News
            messages={messages}
            isUnread={(message) => isUnread(message, readUpTo)}
            unread={unread}
            onClose={close}
          />
        </Suspense>
      ) : null}
    </span>
  );
}
