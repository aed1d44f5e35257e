/** Names from other SDKs, and their counterparts here. */

const NAMES = {
  Server: {
    registerTool: "app.tool(name, options, handler)",
    registerResource: "app.resource(uri, options, handler)",
    registerPrompt: "app.prompt(name, options, handler)",
    addTool: "app.tool(name, options, handler)",
    addResource: "app.resource(uri, options, handler)",
    addResourceTemplate: "app.resource(template, options, handler)",
    addPrompt: "app.prompt(name, options, handler)",
    addMiddleware: "app.middleware(handler)",
    removeTool: "app.tools.remove(name)",
    connect: "app.run(), app.listen(url) or app.serve(transport)",
    start: "app.run(), app.listen(url) or app.serve(transport)",
    server: "app itself",
    setRequestHandler: "app.method(name, { params }, handler)",
    setNotificationHandler: "app.notification(name, { params }, handler)",
    sendToolListChanged: "sent by itself when app.tools changes",
    sendResourceListChanged: "sent by itself when app.resources changes",
    sendPromptListChanged: "sent by itself when app.prompts changes",
    sendResourceUpdated: "app.notifyUpdated(uri)",
    sendLoggingMessage: "ctx.log(level, data)",
    elicitInput: "ctx.elicit(message, schema)",
    createMessage: "ctx.sample(messages)",
    listRoots: "ctx.roots()",
    use: "app.middleware(handler)",
  },
  Context: {
    mcpReq: "ctx itself: ctx.requestId, ctx.meta, ctx.elicit(…), ctx.sample(…)",
    http: "ctx.headers and ctx.principal",
    reportProgress: "ctx.progress(progress, { total, message })",
    report_progress: "ctx.progress(progress, { total, message })",
    elicitInput: "ctx.elicit(message, schema)",
    requestSampling: "ctx.sample(messages)",
    createMessage: "ctx.sample(messages)",
    listRoots: "ctx.roots()",
    sendNotification: "ctx.progress(…), ctx.log(…) or app.notifyUpdated(uri)",
    sendRequest: "ctx.elicit(…), ctx.sample(…) or ctx.roots()",
    authInfo: "ctx.principal",
    requestInfo: "ctx.headers",
    _meta: "ctx.meta",
  },
  Client: {
    connect: "Client.connect(target)",
    getServerVersion: "client.server",
    getServerCapabilities: "client.capabilities",
    getInstructions: "client.instructions",
    getNegotiatedProtocolVersion: "client.revision",
    setRequestHandler: "onElicit, onSample and roots in Client.connect(target, options)",
    setNotificationHandler: "onLog, onListChanged and onProgress in Client.connect(target, options)",
    subscribeResource: "client.subscribe({ uris: [uri] })",
    unsubscribeResource: "closing the subscription that client.subscribe({ uris: [uri] }) returned",
    listen: "client.subscribe({ uris, tools, resources, prompts })",
    setLoggingLevel: "client.setLogLevel(level)",
    sendRootsListChanged: "client.setRoots(roots)",
  },
} as const;

/** Makes reading one of these names throw an error with its counterpart; setting one still works. */
export function explainSdkNames(owner: keyof typeof NAMES, made: { readonly prototype: object }): void {
  for (const [name, ours] of Object.entries(NAMES[owner])) {
    Object.defineProperty(made.prototype, name, {
      configurable: true,
      get(): never {
        throw new TypeError(`'${owner}' has no '${name}': here it is ${ours}`);
      },
      set(this: object, value: unknown) {
        Object.defineProperty(this, name, { value, writable: true, configurable: true, enumerable: true });
      },
    });
  }
}

/** The name of other SDKs for `Server`; its constructor throws an error that says so. */
export class McpServer {
  private constructor() {
    throw new TypeError("'gudgeon' has no 'McpServer': here it is Server");
  }
}

/** The name of other SDKs for `Server`; its constructor throws an error that says so. */
export class FastMCP {
  private constructor() {
    throw new TypeError("'gudgeon' has no 'FastMCP': here it is Server");
  }
}
