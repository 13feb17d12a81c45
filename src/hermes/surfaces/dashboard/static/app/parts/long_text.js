// A text that grows piece by piece. A string would be copied for every piece, and a reference to part of one
// copy would keep all of it in memory.
const BLOCK_CHARS = 4096; // characters

let last = 0;

/** Immutable: `add` returns a new one, which shares the existing blocks. */
export class LongText {
  /**
   * @param {string} [text]
   * @param {{ text: string, start: number, end: number }[]} [blocks]
   * @param {number} [origin]
   */
  constructor(text = "", blocks = [], origin = ++last) {
    this.origin = origin; // the same for all that one text grows to
    this.blocks = blocks;
    this.tail = text;
    this.length = (blocks.at(-1)?.end ?? 0) + text.length;
  }

  /**
   * @param {string} piece
   * @returns {LongText}
   */
  add(piece) {
    const text = this.tail + piece;
    if (text.length < BLOCK_CHARS) return new LongText(text, this.blocks, this.origin);
    const start = this.length - this.tail.length;
    return new LongText(
      "",
      [...this.blocks, { text, start, end: start + text.length }],
      this.origin,
    );
  }

  /**
   * The text after a position.
   * @param {number} at
   */
  from(at) {
    const begun = this.blocks.findLastIndex((block) => block.start <= at && at < block.end);
    const start = this.length - this.tail.length;
    if (begun < 0) return this.tail.slice(Math.max(0, at - start));
    const texts = this.blocks.slice(begun).map((block) => block.text);
    return texts[0].slice(at - this.blocks[begun].start) + texts.slice(1).join("") + this.tail;
  }

  toString() {
    return this.from(0);
  }
}
