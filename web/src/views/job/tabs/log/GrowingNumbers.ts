/** A list of whole numbers in as little memory as they need: a log may have a million of each. */
export class GrowingNumbers {
  #values = new Uint32Array(256);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  at(index: number): number {
    return index >= 0 && index < this.#length ? (this.#values[index] ?? 0) : 0;
  }

  set(index: number, value: number): void {
    if (index < this.#length) this.#values[index] = value;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const larger = new Uint32Array(this.#length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#length++] = value;
  }

  /** Where the first value is that is greater than this one; the values must be in order. */
  firstAbove(value: number): number {
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.at(middle) <= value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The value behind or before the given one, around the ends. */
  next(value: number, way: 1 | -1): number | null {
    if (this.#length === 0) return null;
    const above = this.firstAbove(value);
    if (way === 1) return this.at(above === this.#length ? 0 : above);
    const before = this.firstAbove(value - 1) - 1;
    return this.at(before < 0 ? this.#length - 1 : before);
  }
}
