/** What is on every page: the name, the way to the views, whether data is live, and who is signed in. */
import { useQueryClient } from "@tanstack/react-query";
import { Link, Outlet } from "@tanstack/react-router";
import { lazy, Suspense, useEffect } from "react";
import { useConnection } from "~/api/connection";
import { followEvents } from "~/api/live";
import { Bell } from "~/frame/bell/Bell";
import { ConnectionMark, LostBanner } from "~/frame/ConnectionMark";
import { MoneyNow } from "~/frame/MoneyNow";
import { Shortcuts } from "~/frame/Shortcuts";
import { UserMenu } from "~/frame/UserMenu";
import { VIEWS } from "~/frame/views";
import styles from "./Frame.module.css";

const SessionEnded = lazy(() => import("~/frame/SessionEnded"));

export function Frame() {
  const queries = useQueryClient();
  const { isSignedOut } = useConnection();

  useEffect(() => (isSignedOut ? undefined : followEvents(queries)), [isSignedOut, queries]);

  return (
    <>
      <a href="#view" className={styles.skip}>
        Skip to the content
      </a>
      <header className={styles.head}>
        <div className={styles.top}>
          <Link to="/" className={styles.name}>
            Stationmaster
          </Link>
          <Shortcuts />
          <div className={styles.right}>
            <ConnectionMark />
            <MoneyNow />
            <Bell />
            <UserMenu />
          </div>
        </div>
        <nav className={styles.nav} aria-label="Views">
          {VIEWS.map(({ to, label }) => (
            <Link key={to} to={to} className={styles.link} activeOptions={{ exact: to === "/" }}>
              {label}
            </Link>
          ))}
        </nav>
      </header>
      <LostBanner />
      <main id="view" className={styles.view} tabIndex={-1}>
        <Outlet />
      </main>
      <Suspense fallback={null}>{isSignedOut ? <SessionEnded /> : null}</Suspense>
    </>
  );
}
