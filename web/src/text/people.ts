/** Roles and rights in words. */
import type { Session } from "~/api/documents";

type Role = Session["role"];
type Right = Session["rights"][number];

export const ROLES: Readonly<Record<Role, { readonly label: string; readonly may: string }>> = {
  admin: { label: "Administrator", may: "sees and changes everything" },
  user: { label: "User", may: "trains, and sees what is theirs" },
  viewer: { label: "Viewer", may: "only looks at what is theirs" },
};

export const RIGHTS: Readonly<Record<Right, string>> = {
  read: "look",
  train: "train, stop and remove",
  manage: "manage everything",
};

export const ALL_RIGHTS: readonly Right[] = ["read", "train", "manage"];

export function rightsInWords(rights: readonly Right[]): string {
  return ALL_RIGHTS.filter((right) => rights.includes(right))
    .map((right) => RIGHTS[right])
    .join("; ");
}

/** What a role can have at most. */
export const RIGHTS_OF: Readonly<Record<Role, readonly Right[]>> = {
  admin: ALL_RIGHTS,
  user: ["read", "train"],
  viewer: ["read"],
};
