/** The search and the list of keys, with the keys of every page. Both are fetched when they are first opened. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { sessionQuery } from "~/api/queries";
import { capsOf, useKeys } from "~/frame/keys";
import { VIEWS } from "~/frame/views";
import styles from "./Shortcuts.module.css";

const fetchSearch = () => import("~/frame/search/Search");
const Search = lazy(fetchSearch);
const KeyList = lazy(() => import("~/frame/KeyList"));

export function Shortcuts() {
  const navigate = useNavigate();
  const { data: session } = useQuery(sessionQuery);
  const [open, setOpen] = useState<"search" | "keys" | null>(null);
  const close = () => setOpen(null);
  const search = () => setOpen("search");
  const mayTrain = session?.rights.includes("train") ?? false;

  useKeys("On every page", [
    { keys: "Mod+k", does: "Search", run: search },
    { keys: "/", does: "Search", run: search },
    { keys: "?", does: "Show this list", run: () => setOpen("keys") },
    ...(mayTrain ? [{ keys: "n", does: "New training", run: () => void navigate({ to: "/new" }) }] : []),
    ...VIEWS.map(({ to, label, keys }) => ({ keys, does: `Go to ${label}`, run: () => void navigate({ to }) })),
    { keys: "g i", does: "Go to Inbox", run: () => void navigate({ to: "/inbox" }) },
  ]);

  return (
    <>
      <button
        type="button"
        className={styles.search}
        onClick={search}
        onPointerEnter={() => void fetchSearch()}
        onFocus={() => void fetchSearch()}
        aria-keyshortcuts="Meta+K Control+K /"
      >
        <span aria-hidden>⌕</span>
        <span className={styles.word}>Search</span>
        <span className={styles.caps} aria-hidden>
          {capsOf("Mod+k").join(" ")}
        </span>
      </button>
      <Suspense fallback={null}>
        {open === "search" ? <Search onClose={close} onKeys={() => setOpen("keys")} /> : null}
        {open === "keys" ? <KeyList onClose={close} /> : null}
      </Suspense>
    </>
  );
}
