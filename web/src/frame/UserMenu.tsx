import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, done } from "~/api/client";
import { connection } from "~/api/connection";
import { sessionQuery } from "~/api/queries";
import { Button } from "~/design/Button";
import { Menu, type MenuEntry } from "~/design/Menu";
import { chooseTheme, currentTheme } from "~/frame/theme";

export function UserMenu() {
  const queries = useQueryClient();
  const { data: session } = useQuery(sessionQuery);
  const [theme, setTheme] = useState(currentTheme);
  if (!session) return null;
  const other = theme === "dark" ? "light" : "dark";

  async function signOut(): Promise<void> {
    await done(api.DELETE("/api/session"));
    queries.clear();
    connection.signedOut();
  }

  const colours: MenuEntry = {
    label: other === "dark" ? "Dark colours" : "Light colours",
    onSelect: () => {
      chooseTheme(other);
      setTheme(other);
    },
  };
  const leave: MenuEntry[] =
    session.csrf_token === null ? [] : ["line", { label: "Sign out", onSelect: () => void signOut() }];
  return <Menu trigger={<Button kind="quiet">{session.user} ▾</Button>} entries={[colours, ...leave]} />;
}
