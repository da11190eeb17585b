import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "~/api/client";
import type { ListedUser, Session } from "~/api/documents";
import { asProblem } from "~/api/problem";
import { Button } from "~/design/Button";
import { Empty, Loading } from "~/design/Empty";
import { Menu, type MenuEntry } from "~/design/Menu";
import { ProblemNote } from "~/design/ProblemNote";
import { ShownOnce } from "~/design/ShownOnce";
import { Table } from "~/design/Table";
import { useSay } from "~/design/Toasts";
import { UNKNOWN } from "~/text/format";
import { ROLES } from "~/text/people";
import styles from "../Parts.module.css";
import { usersQuery } from "../queries";
import { RemoveUser } from "./RemoveUser";
import { UserForm } from "./UserForm";

type Open = { readonly what: "add" } | { readonly what: "change" | "remove"; readonly user: ListedUser };

/** The people of this server: for administrators. */
export function UsersSection({ session }: { readonly session: Session }) {
  const queries = useQueryClient();
  const say = useSay();
  const [open, setOpen] = useState<Open | null>(null);
  const [link, setLink] = useState<{ readonly user: string; readonly url: string } | null>(null);
  const mayManage = session.rights.includes("manage");
  const { data, error, refetch } = useQuery(usersQuery);
  const close = () => setOpen(null);
  const finish = (text: string) => {
    close();
    say(text);
    void queries.invalidateQueries({ queryKey: ["users"] });
  };

  async function createLink(user: string): Promise<void> {
    try {
      const made = await answer(api.POST("/api/users/{user}/sign-in-links", { params: { path: { user } } }));
      setLink({ user, url: made.url });
    } catch (problem) {
      say(`No link: ${asProblem(problem).message}`);
    }
  }

  const actionsOf = (user: ListedUser): readonly MenuEntry[] => [
    { label: "Change", onSelect: () => setOpen({ what: "change", user }) },
    { label: "Sign-in link", onSelect: () => void createLink(user.name) },
    "line",
    { label: "Remove", danger: true, onSelect: () => setOpen({ what: "remove", user }) },
  ];

  if (error && !data) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  return (
    <>
      <div className={styles.head}>
        <h2>Users</h2>
        {mayManage ? (
          <Button kind="main" onClick={() => setOpen({ what: "add" })}>
            Add a user
          </Button>
        ) : (
          <span className="quiet">Your token is read-only.</span>
        )}
      </div>
      {!data ? <Loading what="the users" /> : null}
      {data?.items.length === 0 ? (
        <Empty title="Only you use this server">
          <p>Add the people who should train here. Each sees only what is theirs; an administrator sees everything.</p>
        </Empty>
      ) : null}
      {data && data.items.length > 0 ? (
        <Table label="Users">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Role</th>
              <th scope="col">Messages by</th>
              {data.items.some((user) => typeof user.credits === "string") ? (
                <th scope="col" data-figure>
                  Credits
                </th>
              ) : null}
              <th scope="col">
                <span className="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.items.map((user) => (
              <tr key={user.name}>
                <th scope="row">{user.name}</th>
                <td title={roleOf(user).may}>{roleOf(user).label}</td>
                <td>{channelsInWords(user)}</td>
                {data.items.some((each) => typeof each.credits === "string") ? (
                  <td data-figure>{user.credits ?? UNKNOWN}</td>
                ) : null}
                <td data-figure>
                  {mayManage ? (
                    <Menu
                      trigger={
                        <Button kind="quiet" aria-label={`Actions for ${user.name}`}>
                          ⋯
                        </Button>
                      }
                      entries={actionsOf(user)}
                    />
                  ) : null}
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      ) : null}
      {open?.what === "add" ? <UserForm user={null} onClose={close} onDone={finish} /> : null}
      {open?.what === "change" ? <UserForm user={open.user} onClose={close} onDone={finish} /> : null}
      {open?.what === "remove" ? <RemoveUser user={open.user.name} onClose={close} onDone={finish} /> : null}
      {link === null ? null : (
        <ShownOnce title={`A link for ${link.user}`} secret={link.url} onClose={() => setLink(null)}>
          <p>
            It signs one browser in as {link.user}, once and within ten minutes. Anyone who has it can sign in as{" "}
            {link.user}: send it privately.
          </p>
        </ShownOnce>
      )}
    </>
  );
}

function roleOf(user: ListedUser): (typeof ROLES)[keyof typeof ROLES] {
  return ROLES[user.role ?? "user"];
}

function channelsInWords(user: ListedUser): string {
  const channels = [
    user.telegram_id ? "Telegram" : null,
    user.discord_id ? "Discord" : null,
    user.email ? "e-mail" : null,
    user.inbox ? "inbox" : null,
  ].filter((each) => each !== null);
  const text = channels.length === 0 ? "the inbox only" : channels.join(", ");
  return user.quiet ? `${text}; quiet ${user.quiet} ${user.time_zone}` : text;
}
