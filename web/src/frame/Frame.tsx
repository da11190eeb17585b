/** What is on every page: the name, the way to the views, whether data is live, and who is signed in. */
import { useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { useConnection } from "~/api/connection";
import { followEvents } from "~/api/live";
import { ConnectionMark, LostBanner } from "~/frame/ConnectionMark";
import { UserMenu } from "~/frame/UserMenu";
import styles from "./Frame.module.css";

const VIEWS = [
  { to: "/", label: "Trainings" },
  { to: "/machines", label: "Machines" },
  { to: "/models", label: "Models" },
  { to: "/datasets", label: "Datasets" },
  { to: "/recipes", label: "Recipes" },
  { to: "/money", label: "Money" },
  { to: "/settings", label: "Settings" },
] as const;

export function Frame() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { isSignedOut } = useConnection();

  useEffect(() => followEvents(queries), [queries]);
  useEffect(() => {
    if (!isSignedOut) return;
    queries.clear();
    void navigate({ to: "/sign-in", search: { next: window.location.pathname + window.location.search } });
  }, [isSignedOut, navigate, queries]);

  return (
    <>
      <a href="#view" className={styles.skip}>
        To the content
      </a>
      <header className={styles.head}>
        <div className={styles.top}>
          <Link to="/" className={styles.name}>
            Stationmaster
          </Link>
          <div className={styles.right}>
            <ConnectionMark />
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
    </>
  );
}
