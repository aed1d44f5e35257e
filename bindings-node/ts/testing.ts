/** Aids for tests: `gudgeon/testing`. */
import type { Revision } from "./types.js";

/** Every revision, oldest first. */
export const eras: readonly Revision[] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
