/** The caller, as the server or its host authenticated it. */
export interface Principal {
  readonly subject: string;
  readonly clientId?: string | undefined;
  readonly scopes: ReadonlySet<string>;
  readonly claims: Readonly<Record<string, unknown>>;
}
