/** The sections of the settings, and to whom they are offered. */
import type { Session } from "~/api/documents";

export type Right = Session["rights"][number];
export type Role = Session["role"];

export interface Section {
  readonly name: SectionName;
  readonly label: string;
  /** Other words that find it in the search. */
  readonly words: string;
  /** Without this right the section is neither offered nor shown. */
  readonly needs: Right;
  /** Only for administrators, also for their tokens that may only look. */
  readonly onlyAdmins?: boolean;
}

export type SectionName = "you" | "users" | "tokens" | "notifications" | "doctor" | "audit" | "about";

export const SECTIONS: readonly Section[] = [
  { name: "you", label: "You", words: "role rights telegram discord e-mail mute quiet hours colours", needs: "read" },
  { name: "users", label: "Users", words: "people roles add remove sign-in link", needs: "read", onlyAdmins: true },
  { name: "tokens", label: "Tokens", words: "api key secret program", needs: "read" },
  { name: "notifications", label: "Notifications", words: "test channels telegram discord", needs: "train" },
  { name: "doctor", label: "Doctor", words: "checks health worker store disk", needs: "read", onlyAdmins: true },
  { name: "audit", label: "Audit", words: "who changed what log", needs: "read" },
  { name: "about", label: "About", words: "version api openapi keys", needs: "read" },
];

export function isOffered(section: Section, rights: readonly Right[], role: Role | undefined): boolean {
  return rights.includes(section.needs) && (!section.onlyAdmins || role === "admin");
}

export function offeredSections(rights: readonly Right[], role: Role | undefined): readonly Section[] {
  return SECTIONS.filter((section) => isOffered(section, rights, role));
}
