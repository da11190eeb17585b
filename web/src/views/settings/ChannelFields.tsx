import type { ListedUser, User, UserChanges } from "~/api/documents";
import { Field } from "~/design/Field";
import { KINDS } from "~/views/inbox/kinds";
import styles from "./Parts.module.css";

/** What the fields of a form hold: texts, as typed. */
export interface Channels {
  readonly email: string;
  readonly telegram_id: string;
  readonly discord_id: string;
  readonly quiet: string;
  readonly time_zone: string;
  readonly inbox: boolean;
  readonly muted: readonly string[];
}

export function channelsOf(user: User | ListedUser | null): Channels {
  return {
    email: user?.email ?? "",
    telegram_id: user?.telegram_id ?? "",
    discord_id: user?.discord_id ?? "",
    quiet: user?.quiet ?? "",
    time_zone: user?.time_zone ?? "UTC",
    inbox: user?.inbox ?? true,
    muted: user?.muted ?? [],
  };
}

/** Only what differs: what is left out stays as it is, an empty text removes. */
export function changesOf(before: Channels, after: Channels): UserChanges {
  const changes: UserChanges = {};
  for (const name of ["email", "telegram_id", "discord_id", "quiet", "time_zone"] as const) {
    if (after[name].trim() !== before[name]) changes[name] = after[name].trim();
  }
  if (after.inbox !== before.inbox) changes.inbox = after.inbox;
  const mute = after.muted.filter((kind) => !before.muted.includes(kind));
  const unmute = before.muted.filter((kind) => !after.muted.includes(kind));
  if (mute.length > 0) changes.mute = mute;
  if (unmute.length > 0) changes.unmute = unmute;
  return changes;
}

interface Props {
  readonly channels: Channels;
  readonly onChange: (channels: Channels) => void;
  readonly disabled?: boolean;
}

const TEXTS = [
  { name: "telegram_id", label: "Telegram", help: "A chat, by number or @name." },
  { name: "discord_id", label: "Discord", help: "Your user id, a long number." },
  { name: "email", label: "E-mail", help: "Used if Telegram and Discord fail or are not set." },
  { name: "quiet", label: "Quiet hours", help: "Such as 22:00-07:00. Messages that can wait are sent afterwards." },
  { name: "time_zone", label: "Time zone", help: "Of the quiet hours, such as Europe/Berlin." },
] as const;

/** How notifications reach a user. */
export function ChannelFields({ channels, onChange, disabled = false }: Props) {
  const set = (changed: Partial<Channels>) => onChange({ ...channels, ...changed });
  return (
    <>
      <div className={styles.columns}>
        {TEXTS.map(({ name, label, help }) => (
          <Field key={name} label={label} help={help}>
            {(control) => (
              <input
                {...control}
                value={channels[name]}
                onChange={(event) => set({ [name]: event.target.value })}
                maxLength={200}
                autoComplete="off"
                disabled={disabled}
              />
            )}
          </Field>
        ))}
      </div>
      <label className={styles.choice}>
        <input
          type="checkbox"
          checked={channels.inbox}
          disabled={disabled}
          onChange={(event) => set({ inbox: event.target.checked })}
        />
        The inbox of this page is enough: a message counts as delivered there
      </label>
      <fieldset className={styles.group} disabled={disabled}>
        <legend>Send no messages of these kinds</legend>
        <p className="quiet">They still appear in the inbox.</p>
        <div className={styles.choices}>
          {Object.entries(KINDS).map(([kind, { word }]) => (
            <label key={kind} className={styles.choice}>
              <input
                type="checkbox"
                checked={channels.muted.includes(kind)}
                onChange={(event) =>
                  set({
                    muted: event.target.checked
                      ? [...channels.muted, kind]
                      : channels.muted.filter((each) => each !== kind),
                  })
                }
              />
              {word}
            </label>
          ))}
        </div>
      </fieldset>
    </>
  );
}
