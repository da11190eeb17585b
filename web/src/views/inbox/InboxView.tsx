import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { inboxQuery, isUnread, newsQuery, useReadUpTo } from "~/api/inbox";
import { Button } from "~/design/Button";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { useKeys } from "~/frame/keys";
import { useTitle } from "~/frame/title";
import { counted } from "~/text/format";
import styles from "./InboxView.module.css";
import { MessageRow } from "./MessageRow";
import { useMarkRead } from "./useMarkRead";

/** What was sent to the signed-in user, newest first. */
export function InboxView() {
  useTitle("Inbox");
  const navigate = useNavigate();
  const search: { unread?: boolean } = useSearch({ strict: false });
  const { data: news } = useQuery(newsQuery);
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery(inboxQuery);
  const readUpTo = useReadUpTo();
  const markRead = useMarkRead();

  const messages = (data?.pages ?? []).flatMap((page) => [...page.messages].reverse());
  const newest = messages[0];
  const unread = newest !== undefined && newest.id <= readUpTo ? 0 : (news?.unread ?? 0);
  const shown = search.unread ? messages.filter((message) => isUnread(message, readUpTo)) : messages;

  const readAll = () => {
    if (newest && unread > 0) markRead(newest.id);
  };
  useKeys("Inbox", [{ keys: "e", does: "Mark all as read", run: readAll }]);

  if (error && !data) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  return (
    <>
      <div className={styles.head}>
        <h1>Inbox</h1>
        <p className="quiet">{news ? (unread === 0 ? "nothing unread" : counted(unread, "unread message")) : ""}</p>
        <div className={styles.actions}>
          <label className={styles.only}>
            <input
              type="checkbox"
              checked={search.unread ?? false}
              onChange={(event) =>
                void navigate({ to: "/inbox", search: event.target.checked ? { unread: true } : {}, replace: true })
              }
            />
            Unread only
          </label>
          <Button disabled={unread === 0} onClick={readAll}>
            Mark all as read
          </Button>
        </div>
      </div>
      {!data ? <Loading what="the messages" height={320} /> : null}
      {data && shown.length === 0 ? <Nothing hasMessages={messages.length > 0} /> : null}
      <ul className={styles.list} aria-label="Messages">
        {shown.map((message) => (
          <MessageRow
            key={message.id}
            message={message}
            isUnread={isUnread(message, readUpTo)}
            onRead={() => markRead(message.id)}
          />
        ))}
      </ul>
      {hasNextPage ? (
        <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Older messages
        </Button>
      ) : null}
    </>
  );
}

function Nothing({ hasMessages }: { readonly hasMessages: boolean }) {
  if (hasMessages)
    return <Empty title="You have read everything">Older messages stay here; show them all above.</Empty>;
  return (
    <Empty title="No messages yet">
      <p>You get a message here when a training starts, needs you or ends.</p>
      <Link to="/settings" search={{ section: "you" }}>
        How else they reach you: Telegram, Discord or e-mail
      </Link>
    </Empty>
  );
}
