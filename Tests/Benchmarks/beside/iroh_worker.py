"""A node of iroh-docs, driven by lines of JSON; run by iroh_docs.py in the environment that has `iroh`.

    iroh_worker.py DIRECTORY ADDRESS:PORT [TICKET]

Without a ticket it makes a document and prints a ticket for it. With one it joins that document, or
opens it again, and prints each change: [key, text], once the text can be read. On standard input:
[key, text] to set, answered by a line.
"""
import asyncio
import json
import sys

import iroh


def say(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


class Watcher:
    """Tells of an entry once its content is here, which may come later than the entry."""

    def __init__(self, node):
        self.node, self.awaited = node, {}

    async def event(self, event):
        kind = event.type()
        if kind == iroh.LiveEventType.INSERT_REMOTE:
            inserted = event.as_insert_remote()
            digest, key = inserted.entry.content_hash(), inserted.entry.key().decode()
            if inserted.content_status == iroh.ContentStatus.COMPLETE:
                await self.tell(key, digest)
            else:
                self.awaited.setdefault(str(digest), []).append(key)
        elif kind == iroh.LiveEventType.CONTENT_READY:
            digest = event.as_content_ready()
            for key in self.awaited.pop(str(digest), []):
                await self.tell(key, digest)

    async def tell(self, key, digest):
        say([key, (await self.node.blobs().read_to_bytes(digest)).decode()])


async def requests():
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield json.loads(line)


async def main(directory, address, ticket=None):
    iroh.iroh_ffi.uniffi_set_event_loop(asyncio.get_running_loop())
    # No discovery: the ticket has the address, as Kith's `--peer` has.
    options = iroh.NodeOptions(
        enable_docs=True, ipv4_addr=address, node_discovery=iroh.NodeDiscoveryConfig.NONE)
    node = await iroh.Iroh.persistent_with_options(directory, options)
    author = await node.authors().default()
    if ticket is None:
        document = await node.docs().create()
        await document.start_sync([])
        say(str(await document.share(iroh.ShareMode.WRITE, iroh.AddrInfoOptions.ADDRESSES)))
    else:
        document = await node.docs().join_and_subscribe(iroh.DocTicket(ticket), Watcher(node))
        say("joined")
    async for key, text in requests():
        await document.set_bytes(author, key.encode(), text.encode())
        say("set")
    await node.node().shutdown()


asyncio.run(main(*sys.argv[1:]))
