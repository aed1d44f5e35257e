/** Free-form metadata, sent as `_meta`. */
export type Meta = Readonly<Record<string, unknown>>;

/** An icon of a server, tool, resource or prompt. */
export interface Icon {
  src: string;
  mimeType?: string | undefined;
  /** Sizes such as `"48x48"`, or `"any"`. */
  sizes?: readonly string[] | undefined;
  theme?: "light" | "dark" | undefined;
}

/** Hints for the client on the use of a content block or resource. */
export interface Annotations {
  audience?: readonly ("user" | "assistant")[] | undefined;
  /** From 0 (optional) to 1 (required). */
  priority?: number | undefined;
  /** A date and time in ISO 8601. */
  lastModified?: string | undefined;
}

/** Hints about a tool's behaviour. Clients must not rely on them. */
export interface ToolAnnotations {
  title?: string | undefined;
  /** The tool changes nothing. Default: false. */
  readOnly?: boolean | undefined;
  /** The tool may delete or overwrite. Default: true, unless it is read-only. */
  destructive?: boolean | undefined;
  /** A second call with the same arguments changes nothing more. Default: false. */
  idempotent?: boolean | undefined;
  /** The tool reaches external systems, such as the web. Default: true. */
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
/** The type-level mark of content; it has no counterpart at run time. */
export type ContentMark = typeof content;

/** Members of every content block. At run time only values made by `text()`, `image()` and the like are content. */
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

/** An image; made by `image()`. `data` holds its bytes. */
export interface ImageContent extends Common {
  type: "image";
  data: Uint8Array;
  mimeType: string;
}

/** Audio; made by `audio()`. `data` holds its bytes. */
export interface AudioContent extends Common {
  type: "audio";
  data: Uint8Array;
  mimeType: string;
}

/** A link to a resource that the client may read. */
export interface ResourceLink extends Common {
  type: "resource_link";
  uri: string;
  name: string;
  title?: string | undefined;
  description?: string | undefined;
  mimeType?: string | undefined;
}

/** The contents of a resource, embedded in a result. */
export interface EmbeddedResource extends Common {
  type: "resource";
  resource: ResourceContents;
}

/** In sampling: a request of the model to call a tool. */
export interface ToolUse extends Common {
  type: "tool_use";
  id: string;
  name: string;
  input: Readonly<Record<string, unknown>>;
}

/** In sampling: the result of a tool that the model asked for. */
export interface ToolOutcome extends Common {
  type: "tool_result";
  toolUseId: string;
  content: readonly Content[];
  structuredContent?: unknown;
  isError?: boolean | undefined;
}

/** A content block of an unknown type, passed through unchanged. */
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

/** The contents of a resource: `text` or `blob`. */
export interface ResourceContents {
  uri: string;
  mimeType?: string | undefined;
  text?: string | undefined;
  blob?: Uint8Array | undefined;
  meta?: Meta | undefined;
}

/** One message of a conversation; made by `user()` or `assistant()`. */
export interface Message {
  readonly role: "user" | "assistant";
  readonly content: Content | readonly Content[];
  /** All its text content, joined by line breaks. */
  readonly text: string;
}
