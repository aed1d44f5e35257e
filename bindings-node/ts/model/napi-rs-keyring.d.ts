/** The part of the optional package that `keyringStore()` uses, so that the build does not need the package. */
declare module "@napi-rs/keyring" {
  export class AsyncEntry {
    /** Throws if the keyring that the options name is missing. */
    constructor(service: string, name: string, options: { linux: { store: "secret-service" } });
    getPassword(): Promise<string | null | undefined>;
    setPassword(text: string): Promise<void>;
    /** Resolves to false if there was no entry. */
    deletePassword(): Promise<boolean>;
  }
}
