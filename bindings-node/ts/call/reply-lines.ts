import type { NativeWorkQueue } from "../native.js";
import { ReplyKind } from "../plan/replies.js";

/** Kinds of reply lines beyond those of `ReplyKind`. */
const TEXT_BESIDE = 6;
export const FAILURE = 7;
export const QUESTIONS = 8;

/** A longer text, or one with line breaks, is passed beside the lines. */
const LONG = 4_096;
/** The length of the replies at which they are sent before the turn of the event loop ends. */
const MANY = 1 << 20;

/** The replies of one turn of the event loop, which the native half receives in one call. */
export class ReplyLines {
  // Not private by `#`, which costs more in each call, here and in the scheduler.
  private lines = "";
  private texts: string[] = [];
  /** The length of the texts. */
  private textLength = 0;
  private isScheduled = false;
  /** `true` if some client left so much unread, when replies were last sent, that its handlers have to wait. */
  hasBacklog = false;

  /** `onFlush` is called after a scheduled flush. */
  constructor(
    private readonly workQueue: NativeWorkQueue,
    private readonly onFlush: () => void,
  ) {}

  get isEmpty(): boolean {
    return this.lines === "";
  }

  add(slot: number, kind: number, payload: string): void {
    if (kind === ReplyKind.text && (payload.length > LONG || payload.includes("\n"))) {
      this.lines += `${slot} ${TEXT_BESIDE} ${this.texts.push(payload) - 1}\n`;
      this.textLength += payload.length;
    } else {
      this.lines += `${slot} ${kind} ${payload}\n`;
    }
  }

  /** Sends the replies if they are long already. */
  flushIfLong(): void {
    if (this.lines.length + this.textLength > MANY) this.flush();
  }

  /** Sends the replies after all microtasks of this turn, or at once if they are long. */
  schedule(): void {
    this.flushIfLong();
    if (this.isScheduled) return;
    this.isScheduled = true;
    // A tick requested in a microtask runs after all microtasks.
    queueMicrotask(() => process.nextTick(this.flushScheduled));
  }

  private readonly flushScheduled = (): void => {
    this.isScheduled = false;
    this.flush();
    this.onFlush();
  };

  flush(): void {
    if (this.lines === "") return;
    const lines = this.lines;
    const texts = this.texts;
    this.lines = "";
    this.textLength = 0;
    if (texts.length > 0) this.texts = [];
    this.hasBacklog = this.workQueue.reply(lines, texts.length > 0 ? texts : undefined);
  }
}
