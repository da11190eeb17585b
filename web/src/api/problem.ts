/** An error that the server explained (RFC 9457), or that it could not be reached. */
export class Problem extends Error {
  override readonly name = "Problem";

  constructor(
    message: string,
    readonly status: number,
    readonly hint: string | null = null,
    readonly kind = "",
    /** After how long the server wants to be asked again. */
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(message);
  }

  get isUnreachable(): boolean {
    return this.status === 0;
  }
}

export function problemOf(status: number, body: unknown): Problem {
  if (typeof body === "object" && body !== null && "detail" in body && typeof body.detail === "string") {
    const hint = "hint" in body && typeof body.hint === "string" ? body.hint : null;
    const type = "type" in body && typeof body.type === "string" ? body.type : "";
    const wait =
      "retry_after_seconds" in body && typeof body.retry_after_seconds === "number" ? body.retry_after_seconds : null;
    return new Problem(body.detail, status, hint, type.slice(type.lastIndexOf(":") + 1), wait);
  }
  return new Problem(`the server answered ${status}`, status);
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(error instanceof Error ? error.message : String(error), 0);
}
