# A buyer, as a reducer: a snapshot goes in, at most one act comes out, and it holds for that snapshot only.
# It makes one deal for each JOB. Run it twice, or kill it: nothing is said twice, since ids derive from what is decided on.
# AGENT, PEER, SEED (SU…, signs), LOGIN (SU…, logs in), NATS (a URL), JOB come from the environment; test/languages runs this file.
import asyncio, datetime, hashlib, json, os, uuid

import nats, nkeys, rfc8785

AGENT, PEER, JOB, MOST = os.environ["AGENT"], os.environ["PEER"], os.environ.get("JOB", "thumbnails"), 8


def token(uri):
    human, name = uri.startswith("human://"), uri.split("://", 1)[1].encode()
    plain = b"abcdefghijklmnopqrstuvwxyz0123456789-"
    other = {ord("."): "_", ord("/"): "~"}
    return ("@" if human else "") + "".join(chr(b) if b in plain else other.get(b, f"={b:02x}") for b in name)


def uuid7(*of):  # the same for the same decision
    raw = bytearray(hashlib.sha256("\n".join(of).encode()).digest()[:16])
    raw[6], raw[8] = raw[6] & 0x0F | 0x70, raw[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(raw)))


def decide(deal):  # a move of the snapshot and what it is filled in with, or None
    moves = {(m["performative"], m.get("referenceId")): m for m in deal["moves"]}
    theirs = next((o for o in deal["offers"] if o["status"] == "open" and not o["mine"]), None)
    if deal.get("agreed") and ("CLOSE", None) in moves:
        return moves["CLOSE", None], {"outcome": "completed"}
    if theirs and theirs["terms"].get("pricePerImage", MOST + 1) <= MOST:
        return moves.get(("ACCEPT", theirs["id"])), {}
    if theirs and ("REJECT", theirs["id"]) in moves:
        return moves["REJECT", theirs["id"]], {"reason": f"more than {MOST}"}
    if not deal["open"] and not deal.get("agreed") and len(deal["offers"]) < 3 and deal["state"] in ("INTRODUCED", "CONVERSING"):
        terms = {"pricePerImage": 5, "currency": "USD"}
        return moves.get(("PROPOSE", None)), {"type": "service-agreement", "subject": JOB, "terms": terms}
    return None


async def main():
    key = nkeys.from_seed(os.environ["SEED"].encode())

    async def away(_):
        pass

    quiet = {"error_cb": away, "max_reconnect_attempts": -1, "inbox_prefix": f"_INBOX.{token(AGENT)}".encode()}
    nc = await nats.connect(os.environ["NATS"], nkeys_seed_str=os.environ["LOGIN"], **quiet)
    session = uuid7(AGENT, PEER, JOB)

    async def ask(subject, request):  # until there is an answer; the same bytes are entered once
        while True:
            try:
                reply = json.loads((await nc.request(f"asp.agent.{token(AGENT)}.{subject}", json.dumps(request).encode(), timeout=60)).data)
                if reply.get("error", {}).get("code") not in ("unavailable", "rate_limited"):
                    return reply
            except nats.errors.Error:
                pass  # the broker is away
            await asyncio.sleep(1)

    async def say(act, body, head=None):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        link = {"sequenceNumber": head["n"] + 1} if head else {}
        envelope = {
            "version": "asp/0.1", "messageId": uuid7(session, head["hash"] if head else "", act, body.get("referenceId", "")), "sessionId": session,
            "timestamp": now, "sender": {"agentId": AGENT}, "performative": act, "content": {"body": body},
            "integrity": {"previousHash": head["hash"]} if head else {}, **link,
        }
        envelope["integrity"]["signature"] = "ed25519:" + key.sign(rfc8785.dumps(envelope)).hex()
        return (await ask(f"submit.{session}", envelope)).get("error", {}).get("code")

    await say("PROPOSE", {
        "proposalId": "invitation", "type": "session-invitation", "subject": JOB, "terms": {"purpose": JOB, "participants": [PEER]},
    })  # refused if it is there
    deal = await ask("api.session.snapshot", {"sessionId": session})
    if "error" in deal:
        raise SystemExit(deal["error"]["message"])
    while deal["state"] not in ("CLOSED", "FAILED"):
        move, fill = decide(deal) or (None, {})
        if move:
            refused = await say(move["performative"], {**move["body"], **fill}, deal["head"])
            if refused in (None, "chain_conflict", "duplicate"):  # it is said, or somebody was faster: decide anew
                deal = await ask("api.session.snapshot", {"sessionId": session, "since": deal["cursor"]})
                continue
            print(f"{move['performative']} is refused: {refused}", flush=True)  # as it would be again: wait for news
        news = await ask("api.turn.wait", {"sessionId": session, "since": deal["cursor"], "seconds": 50})
        deal = news.get("snapshot") or await ask("api.session.snapshot", {"sessionId": session})  # time passes without news, too
    print(session, json.dumps((deal.get("agreed") or {}).get("terms")))
    await nc.close()


asyncio.run(main())
