import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import type { Session } from "~/api/documents";
import { sessionQuery } from "~/api/queries";
import { Empty } from "~/design/Empty";
import { useTitle } from "~/frame/title";
import { AboutSection } from "./about/AboutSection";
import { AuditSection } from "./audit/AuditSection";
import { DoctorSection } from "./doctor/DoctorSection";
import { NotificationsSection } from "./notifications/NotificationsSection";
import styles from "./SettingsView.module.css";
import { isOffered, offeredSections, SECTIONS, type SectionName } from "./sections";
import { TokensSection } from "./tokens/TokensSection";
import { UsersSection } from "./users/UsersSection";
import { YouSection } from "./you/YouSection";

const VIEWS: Record<SectionName, (props: { readonly session: Session }) => React.ReactNode> = {
  you: YouSection,
  users: UsersSection,
  tokens: TokensSection,
  notifications: NotificationsSection,
  doctor: DoctorSection,
  audit: AuditSection,
  about: AboutSection,
};

/** Who you are and what you may set here. The section is in the address. */
export function SettingsView() {
  const search: { section?: string } = useSearch({ strict: false });
  const { data: session } = useQuery(sessionQuery);
  const section = SECTIONS.find((each) => each.name === (search.section ?? "you"));
  useTitle(section ? `${section.label} · Settings` : "Settings");
  if (!session) return null;
  return (
    <>
      <h1>Settings</h1>
      <div className={styles.page}>
        <nav aria-label="Sections of the settings">
          <ul className={styles.sections}>
            {offeredSections(session.rights, session.role).map(({ name, label }) => (
              <li key={name}>
                <Link
                  to="/settings"
                  search={{ section: name }}
                  className={styles.link}
                  aria-current={name === section?.name ? "page" : undefined}
                >
                  {label}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        <div className={styles.section}>
          <Shown session={session} name={section?.name} />
        </div>
      </div>
    </>
  );
}

function Shown({ session, name }: { readonly session: Session; readonly name: SectionName | undefined }) {
  const section = SECTIONS.find((each) => each.name === name);
  if (section === undefined) return <Empty title="There is no such section">Choose one from the list.</Empty>;
  if (!isOffered(section, session.rights, session.role)) {
    return (
      <Empty title={`${section.label}: not for you`}>
        <p>
          {section.onlyAdmins
            ? `Only administrators see this. You are signed in as ${session.user}, who is a ${session.role}.`
            : `You are signed in with the rights ${session.rights.join(", ")}; this needs the right “${section.needs}”.`}
        </p>
        <p>Ask an administrator of this server if you need it.</p>
      </Empty>
    );
  }
  const View = VIEWS[section.name];
  return <View session={session} />;
}
