/** Every public type; the classes stand in files of their own. */
export type * from "./types/client.js";
export type * from "./types/content.js";
export type * from "./types/context.js";
export type * from "./types/components.js";
export type * from "./types/schema.js";
export type * from "./types/server.js";
