/** Returns a value as error texts show it. */
export function display(value: unknown): string {
  try {
    return shortened(JSON.stringify(value) ?? String(value));
  } catch {
    return shortened(String(value));
  }
}

function shortened(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
