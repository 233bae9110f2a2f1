# A buyer: it invites, offers, reads its session in order, and accepts any counter-offer.
# AGENT, PEER, SEED (SU…, signs), LOGIN (SU…, logs in) and NATS (a URL) come from the environment; test/languages runs this file.
import asyncio, datetime, json, os, sys, time, uuid

import nats, nkeys, rfc8785

AGENT, PEER, SEED = os.environ["AGENT"], os.environ["PEER"], os.environ["SEED"]


def token(uri):
    human, name = uri.startswith("human://"), uri.split("://", 1)[1].encode()
    plain = b"abcdefghijklmnopqrstuvwxyz0123456789-"
    other = {ord("."): "_", ord("/"): "~"}
    return ("@" if human else "") + "".join(chr(b) if b in plain else other.get(b, f"={b:02x}") for b in name)


def uuid7():
    raw = bytearray((time.time_ns() // 10**6).to_bytes(6, "big") + os.urandom(10))
    raw[6], raw[8] = raw[6] & 0x0F | 0x70, raw[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(raw)))


async def main():
    key = nkeys.from_seed(SEED.encode())
    nc = await nats.connect(os.environ["NATS"], nkeys_seed_str=os.environ["LOGIN"], inbox_prefix=f"_INBOX.{token(AGENT)}".encode())
    session = uuid7()

    async def ask(subject, data):
        reply = json.loads((await nc.request(f"asp.agent.{token(AGENT)}.{subject}", data, timeout=10)).data)
        if "error" in reply:
            raise RuntimeError(f"{reply['error']['code']}: {reply['error']['message']}")
        return reply

    async def say(act, body):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        envelope = {
            "version": "asp/0.1", "messageId": uuid7(), "sessionId": session, "timestamp": now,
            "sender": {"agentId": AGENT}, "performative": act, "content": {"body": body}, "integrity": {},
        }
        envelope["integrity"]["signature"] = "ed25519:" + key.sign(rfc8785.dumps(envelope)).hex()
        return await ask(f"submit.{session}", json.dumps(envelope).encode())

    await say("PROPOSE", {
        "proposalId": "invitation", "type": "session-invitation", "subject": "thumbnails",
        "terms": {"purpose": "thumbnails", "participants": [PEER]},
    })
    mine = await ask("api.session.consumer", json.dumps({"sessionId": session}).encode())
    messages = await nc.jetstream().pull_subscribe_bind(consumer=mine["consumer"], stream=mine["stream"])

    async def progress(message):
        while True:
            await asyncio.sleep(10)
            await message.in_progress()

    async def answer(entry):
        body = entry["content"]["body"]
        if entry["performative"] == "ACCEPT":
            await say("PROPOSE", {
                "proposalId": "p1", "type": "service-agreement", "subject": "thumbnails", "terms": {"pricePerImage": 5, "currency": "USD"},
            })
        elif entry["performative"] == "COUNTER":
            await say("ACCEPT", {"referenceId": body["proposalId"]})
            await say("CLOSE", {"outcome": "completed"})
            return body["terms"]

    handled, agreed = -1, None
    while agreed is None:
        try:
            (message,) = await messages.fetch(1, timeout=30)
        except nats.errors.TimeoutError:
            continue
        entry = json.loads(message.data)
        if entry["sequenceNumber"] > handled:
            alive = asyncio.create_task(progress(message))
            try:
                agreed = await answer(entry)
            finally:
                alive.cancel()
            handled = entry["sequenceNumber"]
        await message.ack()
    print(session, json.dumps(agreed))
    await nc.close()


asyncio.run(main())
