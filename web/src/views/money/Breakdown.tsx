import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "~/design/Button";
import { StateMark } from "~/design/StateMark";
import { Table } from "~/design/Table";
import { count, dollars, percent, UNKNOWN } from "~/text/format";
import { type By, type CostGroup, type CostRow, difference, grouped } from "./grouping";
import styles from "./MoneyView.module.css";

const LABELS: Record<By, string> = { training: "Training", recipe: "Recipe", provider: "Provider", user: "User" };
const PAGE = 20;

interface Props {
  readonly rows: readonly CostRow[];
  readonly totalUsd: number;
  readonly by: By;
  readonly onBy: (by: By) => void;
  readonly withUsers: boolean;
}

/** What the money went to, and how the quotes held. */
export function Breakdown({ rows, totalUsd, by, onBy, withUsers }: Props) {
  const [most, setMost] = useState(PAGE);
  const groups = grouped(rows, by);
  const shown = groups.slice(0, most);
  const sum = groups.reduce((total, group) => total + group.costUsd, 0);
  const ended = groups.reduce((total, group) => total + group.endedUsd, 0);
  const quoted = groups.reduce((total, group) => total + group.quotedUsd, 0);
  const others = totalUsd - sum;
  const bys = (Object.keys(LABELS) as By[]).filter((each) => withUsers || each !== "user");
  return (
    <section className={styles.block} aria-labelledby="breakdown">
      <div className={styles.head}>
        <h2 id="breakdown">What it went to</h2>
        {quoted > 0 ? (
          <p className="quiet">
            ended trainings cost {dollars(ended)}, quoted were {dollars(quoted)} ({difference(ended, quoted)})
          </p>
        ) : null}
        <fieldset className={styles.choices}>
          <legend className="visually-hidden">Sum up by</legend>
          {bys.map((each) => (
            <label key={each} className={styles.choice}>
              <input type="radio" name="by" checked={each === by} onChange={() => onBy(each)} />
              {LABELS[each]}
            </label>
          ))}
        </fieldset>
      </div>
      <Table label="What the money went to">
        <thead>
          <tr>
            <th scope="col">{LABELS[by]}</th>
            <th scope="col">{by === "training" ? "State" : "Trainings"}</th>
            <th scope="col" data-figure>
              Cost
            </th>
            <th scope="col" data-figure>
              Share
            </th>
            <th scope="col" data-figure>
              Quoted
            </th>
            <th scope="col" data-figure>
              Against the quote
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((group) => (
            <Row key={group.key} group={group} totalUsd={totalUsd} />
          ))}
          {others > 0.000_001 ? (
            <tr>
              <th scope="row">Removed or older trainings</th>
              <td>{UNKNOWN}</td>
              <td data-figure>{dollars(others)}</td>
              <td data-figure>{percent((others / totalUsd) * 100)}</td>
              <td data-figure>{UNKNOWN}</td>
              <td data-figure>{UNKNOWN}</td>
            </tr>
          ) : null}
        </tbody>
      </Table>
      {groups.length > most ? (
        <div>
          <Button onClick={() => setMost(most + 100)}>More, {count(groups.length - most)} are not shown</Button>
        </div>
      ) : null}
    </section>
  );
}

function Row({ group, totalUsd }: { readonly group: CostGroup; readonly totalUsd: number }) {
  const quoted = group.job ? group.job.quoted_usd : group.quotedUsd;
  return (
    <tr>
      <th scope="row">
        {group.job ? (
          <Link to="/jobs/$job" params={{ job: group.job.id }}>
            {group.name}
          </Link>
        ) : (
          group.name
        )}
      </th>
      <td>{group.job ? <StateMark shown={group.job.shown} /> : count(group.count)}</td>
      <td data-figure>{dollars(group.costUsd)}</td>
      <td data-figure>{totalUsd > 0 ? percent((group.costUsd / totalUsd) * 100) : UNKNOWN}</td>
      <td data-figure>{quoted > 0 ? dollars(quoted) : UNKNOWN}</td>
      <td data-figure>{difference(group.endedUsd, group.quotedUsd) ?? UNKNOWN}</td>
    </tr>
  );
}
