// One try of a request, and its time. Knows nothing of HTTP.

/** One try of a request: its signal, which the time and the caller's own signal abort. */
export class Attempt {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #aborted = () => this.#controller.abort(this.#outer?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  timeoutMs: number;
  isLate = false;

  constructor(timeoutMs: number, outer: AbortSignal | undefined) {
    this.timeoutMs = timeoutMs;
    this.#outer = outer;
    outer?.throwIfAborted();
    outer?.addEventListener("abort", this.#aborted, { once: true });
    this.restart(timeoutMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isCancelled(): boolean {
    return this.#outer?.aborted ?? false;
  }

  restart(timeoutMs: number): void {
    this.pause();
    this.timeoutMs = timeoutMs;
    this.#timer = setTimeout(() => {
      this.isLate = true;
      this.#controller.abort();
    }, timeoutMs);
  }

  pause(): void {
    clearTimeout(this.#timer);
  }

  /** Closes what is still open. */
  end(): void {
    this.pause();
    this.#outer?.removeEventListener("abort", this.#aborted);
    this.#controller.abort();
  }
}
