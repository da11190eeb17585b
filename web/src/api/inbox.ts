/** The inbox, with what was just marked as read: the server hears of it when it can no longer be undone. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { answer, api, done } from "~/api/client";
import type { Message } from "~/api/documents";

export const UNDO_MS = 6_000; // as long as the notice with the undo is shown
const PAGE = 50;

function ask(query: { with_read: boolean; limit: number; before?: number }) {
  return answer(api.GET("/api/users/{user}/inbox", { params: { path: { user: "me" }, query } }));
}

/** How many are unread, and the newest few. */
export const newsQuery = queryOptions({
  queryKey: ["inbox", "news"],
  queryFn: () => ask({ with_read: true, limit: 6 }),
  refetchInterval: 30_000,
});

/** All messages, newest page first. A page is oldest first, as the API has it. */
export const inboxQuery = infiniteQueryOptions({
  queryKey: ["inbox", "all"],
  queryFn: ({ pageParam }) =>
    ask({ with_read: true, limit: PAGE, ...(pageParam === null ? {} : { before: pageParam }) }),
  initialPageParam: null as number | null,
  getNextPageParam: (last) => (last.messages.length < PAGE ? undefined : last.messages[0]?.id),
});

let readUpTo = 0; // by this page, whether the server knows or not
let timer: number | undefined;
const listeners = new Set<() => void>();

function change(upTo: number): void {
  readUpTo = upTo;
  for (const listener of listeners) listener();
}

function send(upTo: number, onSent: () => void, onProblem: (problem: unknown) => void): void {
  timer = undefined;
  const body = { up_to: upTo };
  done(api.POST("/api/users/{user}/inbox/read", { params: { path: { user: "me" } }, body, keepalive: true })).then(
    onSent,
    onProblem,
  );
}

/** Marks all messages up to this one as read. Returns what takes it back, which works for a few seconds. */
export function markRead(upTo: number, onSent: () => void, onProblem: (problem: unknown) => void): () => void {
  const before = readUpTo;
  window.clearTimeout(timer);
  change(Math.max(upTo, before));
  const sendNow = () => {
    window.removeEventListener("pagehide", sendNow);
    if (readUpTo >= upTo) send(upTo, onSent, onProblem);
  };
  window.addEventListener("pagehide", sendNow); // closing the page is no undo
  timer = window.setTimeout(sendNow, UNDO_MS);
  return () => {
    window.clearTimeout(timer);
    window.removeEventListener("pagehide", sendNow);
    change(before);
  };
}

/** Up to which message this page has marked them as read. */
export function useReadUpTo(): number {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => readUpTo,
  );
}

export function isUnread(message: Message, upTo: number): boolean {
  return message.read_at === null && message.id > upTo;
}
