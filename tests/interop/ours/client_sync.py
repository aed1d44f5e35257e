"""Our Python `SyncClient` against servers."""

import signal
import time

from described import ANSWERING, describe, failure, perform_all, revision_of, step_done

from gudgeon import SyncClient
from gudgeon.errors import CallTimeout


class Peer:
    def __init__(self, client, logs):
        self.client, self.logs = client, logs

    def connect(self, step):
        return {"revision": self.client.revision, "server": self.client.server.name}

    def list_tools(self, step):
        return sorted(tool.name for tool in self.client.list_tools())

    def list_resources(self, step):
        return sorted(resource.uri for resource in self.client.list_resources())

    def list_templates(self, step):
        return sorted(template.uri_template for template in self.client.list_resource_templates())

    def list_prompts(self, step):
        return sorted(prompt.name for prompt in self.client.list_prompts())

    def call(self, step):
        progress = []
        self.logs.clear()
        if "logs" in step:
            self.client.set_log_level(step["logs"])
        result = self.client.call_tool(
            step["name"],
            step.get("arguments"),
            raise_on_error=False,
            on_progress=lambda at: progress.append([at.progress, at.total]),
        )
        return describe(result, progress, self.logs)

    def cancel(self, step):
        """A blocking call is cancelled by Ctrl-C, or by its timeout where the server counts no cancelled calls."""
        before = self.witnessed(step)
        try:
            if before is None:
                self.client.call_tool(step["name"], step["arguments"], timeout=0.3)
            else:
                # Progress shows that the handler runs.
                self.client.call_tool(step["name"], step["arguments"], on_progress=interrupt)
        except (CallTimeout, KeyboardInterrupt):
            pass
        else:
            raise AssertionError("the cancelled call returned a result")
        if before is None:
            return {"cancelled": None}
        for _ in range(60):
            count = self.witnessed(step) - before
            if count:
                break
            time.sleep(0.05)
        return {"cancelled": count}

    def witnessed(self, step):
        return int(self.client.call_tool(step["witness"]).text) if "witness" in step else None

    def changes(self, step):
        seen = set()
        with self.client.subscribe(step["uri"], tools=True, resources=True, prompts=True) as changes:
            self.client.call_tool("touch")
            self.client.call_tool("grow")
            for change in changes:
                seen.add(f"updated {change.uri}" if change.kind == "updated" else change.kind)
                if len(seen) == 4:
                    return sorted(seen)

    def read(self, step):
        return {"text": self.client.read_resource(step["uri"]).text}

    def prompt(self, step):
        return [
            [message.role, message.text]
            for message in self.client.get_prompt(step["name"], step.get("arguments")).messages
        ]

    def complete(self, step):
        return list(self.client.complete(step["prompt"], step["argument"], step["value"]).values)

    def ping(self, step):
        return self.client.ping() >= 0


def interrupt(_):
    signal.raise_signal(signal.SIGINT)


def perform(job):
    logs: list = []
    on_log = lambda message: logs.append([message.level, message.data])  # noqa: E731
    with SyncClient(job["target"], revision=revision_of(job), on_log=on_log, **ANSWERING) as client:
        peer = Peer(client, logs)
        for step in job["steps"]:
            try:
                got = getattr(peer, step["do"])(step)
            except Exception as error:
                got = failure(error)
            step_done(step, got)


perform_all(perform)
