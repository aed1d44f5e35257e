/** Free-form metadata; travels as `_meta`. */
export type Meta = Readonly<Record<string, unknown>>;

/** An image that stands for a server, tool, resource or prompt. */
export interface Icon {
  src: string;
  mimeType?: string | undefined;
  /** `"48x48"`, …, or `"any"`. */
  sizes?: readonly string[] | undefined;
  theme?: "light" | "dark" | undefined;
}

/** Hints on how a host may use a piece of content. */
export interface Annotations {
  audience?: readonly ("user" | "assistant")[] | undefined;
  /** From 0 (may be left out) to 1 (needed). */
  priority?: number | undefined;
  /** ISO 8601. */
  lastModified?: string | undefined;
}

/** What a tool says about itself; hints, not promises. */
export interface ToolAnnotations {
  title?: string | undefined;
  /** Changes nothing. Default: false. */
  readOnly?: boolean | undefined;
  /** May delete or overwrite. Default: true, where it is not read-only. */
  destructive?: boolean | undefined;
  /** Called again with the same arguments it changes nothing more. Default: false. */
  idempotent?: boolean | undefined;
  /** Reaches things outside, such as the web. Default: true. */
  openWorld?: boolean | undefined;
}

/** The annotations of a tool with the specification's names. */
export interface SpecToolAnnotations {
  title?: string | undefined;
  readOnlyHint?: boolean | undefined;
  destructiveHint?: boolean | undefined;
  idempotentHint?: boolean | undefined;
  openWorldHint?: boolean | undefined;
}

declare const content: unique symbol;
/** Marks content; nothing at run time carries it by this name. */
export type ContentMark = typeof content;

/** Only what text(), image(), audio(), file(), resourceLink(), embed() made is content at run time; a like-shaped object is JSON. */
interface Common {
  readonly [content]: true;
  annotations?: Annotations | undefined;
  meta?: Meta | undefined;
}

/** Text; made by `text()`. Spec: Server Features › Tools › Text content. */
export interface TextContent extends Common {
  type: "text";
  text: string;
}

/** A picture; made by `image()`. `data` are its bytes. */
export interface ImageContent extends Common {
  type: "image";
  data: Uint8Array;
  mimeType: string;
}

/** Sound; made by `audio()`. `data` are its bytes. */
export interface AudioContent extends Common {
  type: "audio";
  data: Uint8Array;
  mimeType: string;
}

/** Points at a resource that the client may read. */
export interface ResourceLink extends Common {
  type: "resource_link";
  uri: string;
  name: string;
  title?: string | undefined;
  description?: string | undefined;
  mimeType?: string | undefined;
}

/** A resource's contents, handed over at once. */
export interface EmbeddedResource extends Common {
  type: "resource";
  resource: ResourceContents;
}

/** In sampling: the model wants this tool called. */
export interface ToolUse extends Common {
  type: "tool_use";
  id: string;
  name: string;
  input: Readonly<Record<string, unknown>>;
}

/** In sampling: what a tool answered. */
export interface ToolOutcome extends Common {
  type: "tool_result";
  toolUseId: string;
  content: readonly Content[];
  structuredContent?: unknown;
  isError?: boolean | undefined;
}

/** A type unknown here, passed through unchanged. */
export interface Other extends Common {
  type: "other";
  raw: Readonly<Record<string, unknown>>;
}

/** @deprecated Hides the DOM's class of the same name: use `TextContent`. */
export type Text = TextContent;
/** @deprecated Hides the DOM's class of the same name: use `ImageContent`. */
export type Image = ImageContent;
/** @deprecated Hides the DOM's class of the same name: use `AudioContent`. */
export type Audio = AudioContent;

/** One block of content, of any type. */
export type Content = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | ToolUse | ToolOutcome | Other;

/** What reading a resource gives: `text` or `blob`. */
export interface ResourceContents {
  uri: string;
  mimeType?: string | undefined;
  text?: string | undefined;
  blob?: Uint8Array | undefined;
  meta?: Meta | undefined;
}

/** One turn of a conversation; made by `user()` and `assistant()`. */
export interface Message {
  readonly role: "user" | "assistant";
  readonly content: Content | readonly Content[];
  /** All its texts, joined by line breaks. */
  readonly text: string;
}
