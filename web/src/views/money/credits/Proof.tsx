import { useQuery } from "@tanstack/react-query";
import { answer, api } from "~/api/client";
import { Button } from "~/design/Button";
import { ProblemNote } from "~/design/ProblemNote";
import { counted } from "~/text/format";
import { credits } from "./amounts";
import styles from "./CreditsBlock.module.css";

/** Checks that every account is the sum of its entries. */
export function Proof({ points }: { readonly points: number | null }) {
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: ["credits", "proof"],
    queryFn: () => answer(api.GET("/api/ledger/proof")),
    enabled: false,
  });
  return (
    <>
      <Button busy={isFetching} onClick={() => void refetch()}>
        Check the ledger
      </Button>
      {error ? <ProblemNote problem={error} /> : null}
      <div role="status">
        {data ? (
          data.sound ? (
            <p className={styles.good}>
              ✓ {counted(data.entries, "entry", "entries")} of {counted(data.accounts, "account")} add up to{" "}
              {credits(data.balance_micros, points)}
            </p>
          ) : (
            <ul className={styles.bad}>
              {data.problems.map((problem) => (
                <li key={problem}>✕ {problem}</li>
              ))}
            </ul>
          )
        ) : null}
      </div>
    </>
  );
}
