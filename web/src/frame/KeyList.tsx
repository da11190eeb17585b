import { Dialog } from "~/design/Dialog";
import { capsOf, useKeyGroups } from "~/frame/keys";
import styles from "./KeyList.module.css";

/** What `?` shows: every key that works on this page. */
export default function KeyList({ onClose }: { readonly onClose: () => void }) {
  const groups = useKeyGroups();
  return (
    <Dialog open onClose={onClose} title="Keys" wide>
      <div className={styles.groups}>
        {[...groups].reverse().map((group) => (
          <section key={group.title}>
            <h3>{group.title}</h3>
            <dl className={styles.keys}>
              {group.keys.map((key) => (
                <div key={key.keys} className={styles.key}>
                  <dt>
                    {capsOf(key.keys).map((cap) => (
                      <kbd key={cap} className={styles.cap}>
                        {cap}
                      </kbd>
                    ))}
                  </dt>
                  <dd>{key.does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <p className="quiet">Keys do nothing while you type in a field. Esc closes this list.</p>
    </Dialog>
  );
}
