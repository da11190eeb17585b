import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { sessionQuery } from "~/api/queries";
import { Button } from "~/design/Button";
import { Menu, type MenuEntry } from "~/design/Menu";
import { signOut } from "~/frame/signOut";
import { chooseTheme, currentTheme } from "~/frame/theme";
import styles from "./UserMenu.module.css";

export function UserMenu() {
  const { data: session } = useQuery(sessionQuery);
  const [theme, setTheme] = useState(currentTheme);
  if (!session) return null;
  const other = theme === "dark" ? "light" : "dark";

  const colours: MenuEntry = {
    label: other === "dark" ? "Dark colours" : "Light colours",
    onSelect: () => {
      chooseTheme(other);
      setTheme(other);
    },
  };
  const leave: MenuEntry[] =
    session.csrf_token === null ? [] : ["line", { label: "Sign out", onSelect: () => void signOut() }];
  const trigger = (
    <Button kind="quiet" title={session.user}>
      <span className={styles.name}>{session.user}</span> ▾
    </Button>
  );
  return <Menu trigger={trigger} entries={[colours, ...leave]} />;
}
