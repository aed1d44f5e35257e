/**
 * Advice for names from other SDKs: the name here, or a sentence that says what to do instead.
 */
export type Advice = Readonly<Record<string, string>>;

/**
 * Returns what is wrong with an unknown name, and the fix: `unknown option 'timout'; did you mean 'timeoutMs'?`
 *
 * @param kind - The sort of name, such as "option".
 * @param known - All names that exist.
 */
export function unknownName(kind: string, name: string, known: readonly string[], advice: Advice = {}): string {
  const advised = Object.hasOwn(advice, name) ? advice[name] : undefined;
  if (advised !== undefined && !known.includes(advised)) return `unknown ${kind} '${name}'; ${advised}`;
  const near = advised ?? closest(name, known);
  const fix = near === undefined ? `it takes ${known.join(", ")}` : `did you mean '${near}'?`;
  return `unknown ${kind} '${name}'; ${fix}`;
}

/** The least similarity of a name that is suggested. */
const SIMILAR = 2 / 3;

/** Returns the known name that was probably meant. */
function closest(name: string, known: readonly string[]): string | undefined {
  const ranked = known.map((one) => [similarity(plain(name), plain(one)), one] as const);
  const [nearest] = ranked.filter(([value]) => value >= SIMILAR).sort(([a], [b]) => b - a);
  return nearest?.[1];
}

/** The name without case and separators: `read_only` and `readOnly` are one name. */
function plain(name: string): string {
  return name.replaceAll(/[_-]/g, "").toLowerCase();
}

/** The share of letters in two names that belong to their longest common subsequence, from 0 to 1. */
function similarity(one: string, other: string): number {
  let row = new Array<number>(other.length + 1).fill(0);
  for (const letter of one) {
    const next = [0];
    for (let at = 1; at <= other.length; at++) {
      const isCommon = letter === other[at - 1];
      next.push(isCommon ? (row[at - 1] ?? 0) + 1 : Math.max(row[at] ?? 0, next[at - 1] ?? 0));
    }
    row = next;
  }
  return (2 * (row[other.length] ?? 0)) / (one.length + other.length);
}
