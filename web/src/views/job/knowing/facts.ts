/** What the charts and figures of a training mean, in sentences. The most urgent come first. */
import type { Job, JobEvent, Reading } from "~/api/documents";
import { clock, count, dollars, duration, figure, finite, memoryOf, percent, speed } from "~/text/format";
import { sentence } from "~/text/sentence";
import type { Tone } from "~/text/states";
import { type Pace, paceOf } from "./pace";

export interface Fact {
  readonly key: string;
  readonly tone: Tone;
  readonly text: string;
}

const MICROS = 1_000_000;

export function factsOf(job: Job, events: readonly JobEvent[], readings: readonly Reading[], now: number): Fact[] {
  const facts = [...warnings(job), ...(job.outcome === null ? going(job, events, readings, now) : ended(job, events))];
  return [...facts, ...memory(job)];
}

/** What needs a look; stalls and parked machines have a place of their own. */
function warnings(job: Job): Fact[] {
  const { loss } = job.progress;
  const found: Fact[] = [];
  if (typeof loss === "string") {
    const text =
      job.outcome === null
        ? `The loss is ${figure(loss)}: what it learns from now on is lost.`
        : `The loss was ${figure(loss)} at the end. A checkpoint from before that is the better model.`;
    found.push({ key: "loss", tone: "bad", text });
  }
  for (const { kind, message } of job.alerts) {
    if (kind !== "stall" && kind !== "parked") found.push({ key: kind, tone: "attention", text: sentence(message) });
  }
  return found;
}

function going(job: Job, events: readonly JobEvent[], readings: readonly Reading[], now: number): Fact[] {
  if (job.state === "QUEUED" || job.state === "PROVISIONING") {
    const last = events.findLast(({ kind }) =>
      ["waiting_for_offer", "waiting_for_turn", "create_refused"].includes(kind),
    );
    return [
      {
        key: "waiting",
        tone: last ? "attention" : "waiting",
        text: last?.sentence ? sentence(last.sentence) : "It waits for its machine.",
      },
      ...forecast(job, now),
    ];
  }
  if (job.transfer) {
    const { way, bytes, total, eta_seconds: left } = job.transfer;
    const share = total > 0 ? percent((bytes / total) * 100) : "some";
    const rest = left === null || left === undefined ? "" : `, ${duration(left)} left`;
    return [
      { key: "transfer", tone: "running", text: `${way === "sending" ? "Sending" : "Fetching"}: ${share}${rest}.` },
    ];
  }
  if (job.state !== "EXECUTING") return [];
  // What its last readings promised does not hold while it stands still; the banner says what does.
  const isStalled = job.alerts.some(({ kind }) => kind === "stall");
  if (isStalled) return [...learning(job), quoted(job)];
  return [...pause(job, now), ...training(job, readings), ...learning(job), ...forecast(job, now)];
}

const PAUSES = new Set(["loading", "caching", "sampling", "evaluating", "saving"]);

/** Its figures stand still meanwhile: so it is said why. */
function pause({ progress }: Job, now: number): Fact[] {
  const { phase, phase_since: since } = progress;
  if (!phase || !PAUSES.has(phase)) return [];
  const lasts = since ? ` for ${duration((now - Date.parse(since)) / 1000)}` : "";
  return [{ key: "phase", tone: "running", text: `${sentence(`${phase}${lasts}`)}` }];
}

function training(job: Job, readings: readonly Reading[]): Fact[] {
  const pace = paceOf(readings);
  return pace ? [paceFact(pace)] : before(job);
}

function before(job: Job): Fact[] {
  if (job.progress.step !== null && job.progress.step !== undefined) {
    const { steps_per_second: now } = job.progress;
    return [{ key: "pace", tone: "running", text: `Training, ${speed(now)}. It is too early to judge its pace.` }];
  }
  const { active_step: doing } = job.progress;
  return [{ key: "pace", tone: "running", text: `No step yet${doing ? `: ${doing}` : ""}.` }];
}

function paceFact({ stepsPerSecond, change, isSteady, over }: Pace): Fact {
  const now = speed(stepsPerSecond);
  if (isSteady) return { key: "pace", tone: "good", text: `Pace ${now}, steady for ${duration(over)}.` };
  const by = percent(Math.abs(change) * 100);
  return change < 0
    ? { key: "pace", tone: "attention", text: `Pace ${now}: ${by} slower than before.` }
    : { key: "pace", tone: "running", text: `Pace ${now}: ${by} faster than before.` };
}

function learning({ progress }: Job): Fact[] {
  const first = finite(progress.first_loss);
  const last = finite(progress.loss);
  if (first === null || last === null || first === 0) return [];
  const share = percent(Math.abs(last / first - 1) * 100);
  const text = `Loss ${figure(last)}, ${share} ${last <= first ? "below" : "above"} its first value.`;
  return [{ key: "learning", tone: last <= first ? "good" : "attention", text }];
}

/** When it is ready and what it will have cost, against the quote and the limit. */
function forecast(job: Job, now: number): Fact[] {
  const eta = finite(job.progress.eta_seconds);
  const perHour = job.costs.reduce((sum, line) => sum + (line.ended_at === null ? line.rate_per_hour_micros : 0), 0);
  const limit = job.limits.max_spend_usd;
  if (eta === null || job.state !== "EXECUTING") return [quoted(job)];
  const total = job.cost_usd + (perHour / MICROS) * (eta / 3600);
  const ready: Fact = {
    key: "ready",
    tone: "running",
    text: `The training ends in about ${duration(eta)}, at ${clock(now + eta * 1000, now)}.`,
  };
  if (total > limit) {
    const text = `At this pace it would cost ${dollars(total)}: it will be stopped early, at ${dollars(limit)}.`;
    return [ready, { key: "cost", tone: "bad", text }];
  }
  const { high } = job.quote.cost_usd;
  const isDear = total > high;
  const text = `At this pace it will cost ${dollars(total)}${isDear ? `, above the quote of at most ${dollars(high)}` : ", within its quote"}.`;
  return [ready, { key: "cost", tone: isDear ? "attention" : "good", text }];
}

function quoted({ quote, limits }: Job): Fact {
  const { low, high } = quote.cost_usd;
  const text = `Quoted ${dollars(low)} to ${dollars(high)}; it is stopped at ${dollars(limits.max_spend_usd)}.`;
  return { key: "cost", tone: "waiting", text };
}

function ended(job: Job, events: readonly JobEvent[]): Fact[] {
  const started = events.find(({ kind }) => kind === "training_started");
  const over = events.findLast(({ kind, to }) => kind === "state" && to === "FETCHING_RESULTS");
  const facts: Fact[] = [];
  if (started && over) {
    const seconds = (Date.parse(over.at) - Date.parse(started.at)) / 1000;
    const steps = job.progress.step;
    const of = steps === null || steps === undefined ? "" : ` for ${count(steps)} steps`;
    facts.push({ key: "trained", tone: "good", text: `Trained ${duration(seconds)}${of}.` });
  }
  const { low, high } = job.quote.cost_usd;
  const against =
    job.cost_usd < low ? "less than the quote of" : job.cost_usd > high ? "more than the quote of" : "quoted";
  facts.push(...learning(job), {
    key: "cost",
    tone: job.cost_usd > high ? "attention" : "good",
    text: `Cost ${dollars(job.cost_usd)}, ${against} ${dollars(low)} to ${dollars(high)}.`,
  });
  return facts;
}

function memory({ used }: Job): Fact[] {
  const { gpu_memory_gib: peak, gpu_gib: total } = used;
  if (peak === null || peak === undefined || !total) return [];
  const share = (peak / total) * 100;
  const tone: Tone = share >= 95 ? "bad" : share >= 85 ? "attention" : "good";
  const text = `GPU memory at most ${memoryOf(peak, total)}${share >= 95 ? ": close to running out" : ""}.`;
  return [{ key: "memory", tone, text }];
}
