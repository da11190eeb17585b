import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "~/api/client";
import type { Session } from "~/api/documents";
import { Button } from "~/design/Button";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { ShownOnce } from "~/design/ShownOnce";
import { When } from "~/design/When";
import { signOut } from "~/frame/signOut";
import { chooseTheme, currentTheme, type Theme } from "~/frame/theme";
import { ROLES, rightsInWords } from "~/text/people";
import styles from "../Parts.module.css";
import { usersQuery } from "../queries";
import { OwnChannels } from "./OwnChannels";

/** Who is signed in, what they may do, and how messages reach them. */
export function YouSection({ session }: { readonly session: Session }) {
  const queries = useQueryClient();
  const [link, setLink] = useState<string | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const { data, error } = useQuery(usersQuery);
  // The single user of a server is described by its settings, not by an entry that could be changed here.
  const own = data?.items.find((each) => each.name === session.user) ?? null;

  async function createLink(): Promise<void> {
    setProblem(null);
    try {
      const made = await answer(api.POST("/api/users/{user}/sign-in-links", { params: { path: { user: "me" } } }));
      setLink(made.url);
    } catch (refused) {
      setProblem(refused);
    }
  }

  return (
    <>
      <h2>You</h2>
      <dl className={styles.facts}>
        <dt>Signed in as</dt>
        <dd>{session.user}</dd>
        <dt>Role</dt>
        <dd>
          {ROLES[session.role].label}: {ROLES[session.role].may}
        </dd>
        <dt>Your rights</dt>
        <dd>{rightsInWords(session.rights)}</dd>
        <dt>Session ends</dt>
        <dd>{session.expires_at ? <When at={session.expires_at} /> : "never: this server needs no sign-in"}</dd>
      </dl>
      {problem ? <ProblemNote problem={problem} /> : null}
      <div className={styles.buttons}>
        <Button onClick={() => void createLink()}>Sign in on another device</Button>
        {session.csrf_token === null ? null : <Button onClick={() => void signOut()}>Sign out</Button>}
      </div>
      {link === null ? null : (
        <ShownOnce title="A link for your other device" secret={link} onClose={() => setLink(null)}>
          <p>It signs one browser in as {session.user}, once and within ten minutes.</p>
        </ShownOnce>
      )}
      <Colours />
      <section className={styles.block} aria-labelledby="reach">
        <h2 id="reach">How messages reach you</h2>
        {data && own === null ? (
          <p>
            You are the single user of this server: your Telegram, Discord and e-mail are in its settings, under{" "}
            <code>notify</code>. Messages are always in the inbox. Section Notifications sends a test.
          </p>
        ) : error ? (
          <ProblemNote problem={error} />
        ) : own ? (
          <OwnChannels
            key={JSON.stringify(own)}
            user={own}
            mayChange={session.rights.includes("train")}
            onChanged={() => void queries.invalidateQueries({ queryKey: ["users"] })}
          />
        ) : (
          <Loading what="your channels" height={320} />
        )}
      </section>
    </>
  );
}

function Colours() {
  const [theme, setTheme] = useState<Theme>(currentTheme);
  return (
    <section className={styles.block} aria-labelledby="colours">
      <h2 id="colours">Colours</h2>
      <div className={styles.buttons} role="radiogroup" aria-labelledby="colours">
        {(["light", "dark"] as const).map((each) => (
          <label key={each} className={styles.choice}>
            <input
              type="radio"
              name="theme"
              checked={theme === each}
              onChange={() => {
                chooseTheme(each);
                setTheme(each);
              }}
            />
            {each === "light" ? "Light" : "Dark"}
          </label>
        ))}
      </div>
      <p className="quiet">Stored in this browser. Until you choose, they follow your system.</p>
    </section>
  );
}
