/**
 * Runs a check of something that ends after a time, first with a short one. On a busy machine a process may not even have
 * started by then, so a check that fails is repeated with a longer time; the last one counts.
 */
export async function withEnoughTime(check) {
  for (const milliseconds of [500, 2_000, 8_000]) {
    try {
      return await check(milliseconds);
    } catch {
      continue;
    }
  }
  return check(32_000);
}
