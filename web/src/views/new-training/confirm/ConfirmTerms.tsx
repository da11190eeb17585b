import type { Proposal } from "~/api/documents";
import { Confirm } from "~/design/Dialog";
import { useNow, When } from "~/design/When";
import { bytes, counted, dollars, dollarsPerHour, duration, memoryOf } from "~/text/format";
import { ofTerms } from "../cost/forecast";
import { hoursWords, limitWords, rangeOf, trainWords } from "../cost/words";
import styles from "./ConfirmTerms.module.css";
import type { useProposing } from "./proposing";

/** The terms of the proposal, exactly; the button says the price. */
export function ConfirmTerms({ steps }: { readonly steps: ReturnType<typeof useProposing> }) {
  const { proposal, former, proposing, submitting } = steps;
  const now = useNow();
  if (proposal === null) return null;
  // While it is unsure whether it was queued, only the same proposal may be sent again: it cannot start twice.
  const isOver = steps.isGone || (Date.parse(proposal.expires_at) <= now && !steps.isUnsure);
  return (
    <Confirm
      open
      onClose={steps.leave}
      title={`Train ${proposal.terms.name}?`}
      action={isOver ? "Ask for the price again" : trainWords(ofTerms(proposal.terms))}
      onConfirm={() => (isOver ? steps.again() : submitting.mutate(proposal))}
      busy={proposing.isPending || submitting.isPending || submitting.isSuccess}
      problem={isOver ? proposing.error : (submitting.error ?? proposing.error)}
    >
      {isOver ? (
        <p role="alert" className={styles.over}>
          ▲ This price is no longer valid, so nothing was rented. Ask again: the new price is shown before you confirm.
        </p>
      ) : null}
      {steps.isUnsure ? (
        <p role="status" className={styles.over}>
          ▲ The answer was lost, so the training may be queued already. Confirm once more to make sure: it is not
          started twice.
        </p>
      ) : null}
      {former && !isOver ? <Changed former={former} proposal={proposal} /> : null}
      <TermsList proposal={proposal} />
      {isOver ? null : (
        <p className="quiet">
          This price is valid until <When at={proposal.expires_at} />.
        </p>
      )}
    </Confirm>
  );
}

function Changed({ former, proposal }: { readonly former: Proposal; readonly proposal: Proposal }) {
  const before = former.terms.quote.cost_usd.expected;
  const after = proposal.terms.quote.cost_usd.expected;
  return (
    <p role="status" className={styles.over}>
      {before === after
        ? `The price is still about ${dollars(after)}.`
        : `The price was about ${dollars(before)} and is about ${dollars(after)} now.`}
    </p>
  );
}

function TermsList({ proposal }: { readonly proposal: Proposal }) {
  const { terms } = proposal;
  const { quote, limits } = terms;
  const data = terms.rows > 0 ? counted(terms.rows, "line") : counted(terms.images, "picture");
  return (
    <>
      <dl className={styles.terms}>
        <dt>Recipe</dt>
        <dd>{terms.recipe}</dd>
        <dt>Machine</dt>
        <dd>
          {quote.gpu ? `${quote.gpu} or faster` : "no GPU"} of {terms.provider}, {quote.disk_gib} GB of disk
        </dd>
        <dt>Price</dt>
        <dd>
          {dollarsPerHour(quote.price_per_hour_usd)}, at most {dollarsPerHour(limits.max_price_per_hour_usd)}
        </dd>
        <dt>Time</dt>
        <dd>
          about {duration(quote.hours.expected * 3600)} ({hoursWords(quote.hours)})
        </dd>
        <dt>Total</dt>
        <dd>
          about {dollars(quote.cost_usd.expected)} ({rangeOf(dollars(quote.cost_usd.low), dollars(quote.cost_usd.high))}
          )
        </dd>
        <dt>Limit</dt>
        <dd>{limitWords(limits)}</dd>
        {quote.gpu_memory_gib ? (
          <>
            <dt>GPU memory</dt>
            <dd>about {memoryOf(quote.gpu_memory_gib.expected, quote.gpu_gib)}</dd>
          </>
        ) : null}
        <dt>Dataset</dt>
        <dd>
          {data}, {bytes(terms.dataset_bytes)}
        </dd>
      </dl>
      {terms.notes.length > 0 ? (
        <ul className={styles.notes} aria-label="Before you start">
          {terms.notes.map((note) => (
            <li key={note}>▲ {note}</li>
          ))}
        </ul>
      ) : null}
    </>
  );
}
