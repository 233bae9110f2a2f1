// A seller, as a reducer: a snapshot goes in, at most one act comes out, and it holds for that snapshot only.
// Run as many as you like: nothing is said twice, since each act is tied to the head that it was decided on.
// AGENT, SEED (SU…, signs), LOGIN (SU…, logs in) and NATS (a URL) come from the environment; test/languages runs this file.
// In a browser, the first import and connect go away: wsconnect speaks to `parley serve --websocket`.
import { connect } from "@nats-io/transport-node";
import { nkeyAuthenticator, nkeys, wsconnect } from "@nats-io/nats-core";

const { AGENT, SEED, LOGIN, NATS } = process.env;
const LEAST = 4;

function token(uri) {
  const name = new TextEncoder().encode(uri.replace(/^\w+:\/\//, ""));
  const other = { ".": "_", "/": "~" };
  const write = (b) => {
    const c = String.fromCharCode(b);
    return /[a-z0-9-]/.test(c) ? c : other[c] ?? "=" + b.toString(16).padStart(2, "0");
  };
  return (uri.startsWith("human://") ? "@" : "") + Array.from(name, write).join("");
}

const bytes = (text) => new TextEncoder().encode(text);
const hex = (raw) => Array.from(raw, (b) => b.toString(16).padStart(2, "0")).join("");

async function uuid7(...of) { // the same for the same decision
  const raw = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes(of.join("\n")))).slice(0, 16);
  raw[6] = (raw[6] & 0x0f) | 0x70;
  raw[8] = (raw[8] & 0x3f) | 0x80;
  return hex(raw).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

// RFC 8785: JavaScript writes numbers and strings as it wants them, and sorts keys as it does.
function jcs(v) {
  if (Array.isArray(v)) return `[${v.map(jcs)}]`;
  if (v === null || typeof v !== "object") return JSON.stringify(v);
  return `{${Object.keys(v).sort().map((k) => `${JSON.stringify(k)}:${jcs(v[k])}`)}}`;
}

const key = nkeys.fromSeed(bytes(SEED));
const options = { servers: NATS, authenticator: nkeyAuthenticator(bytes(LOGIN)), inboxPrefix: `_INBOX.${token(AGENT)}`, maxReconnectAttempts: -1 };
if (NATS.startsWith("ws") && !globalThis.WebSocket) { // Node before 22
  globalThis.WebSocket = (await import("ws")).WebSocket;
}
const nc = NATS.startsWith("ws") ? await wsconnect(options) : await connect(options);

async function ask(subject, request) { // until there is an answer; the same bytes are entered once
  for (;; await new Promise((done) => setTimeout(done, 1000))) {
    try {
      const reply = await nc.request(`asp.agent.${token(AGENT)}.${subject}`, JSON.stringify(request), { timeout: 60_000 });
      if (!["unavailable", "rate_limited"].includes(reply.json().error?.code)) return reply.json();
    } catch { /* the broker is away */ }
  }
}

// decide is a move of the snapshot and what it is filled in with, or nothing.
function decide({ moves, open, offers }) {
  const may = (act, of) => moves.find((m) => m.performative === act && m.referenceId === of);
  const invitation = open.find(({ kind, id }) => kind === "invitation" && may("ACCEPT", id));
  if (invitation) return [may("ACCEPT", invitation.id), {}];
  const theirs = offers.findLast((o) => o.status === "open" && !o.mine);
  if (!theirs) return [];
  const price = theirs.terms?.pricePerImage;
  if (!(price >= LEAST)) return [may("REJECT", theirs.id), { reason: `less than ${LEAST}` }];
  if (offers.some((o) => o.mine)) return [may("ACCEPT", theirs.id), {}];
  return [may("COUNTER", theirs.id), { terms: { ...theirs.terms, pricePerImage: price + 2 } }];
}

async function answer(deal) {
  for (;;) {
    const [move, fill] = decide(deal);
    if (!move) return;
    const { performative, body } = move, { n, hash } = deal.head;
    const envelope = {
      version: "asp/0.1", messageId: await uuid7(deal.sessionId, hash, performative, body.referenceId ?? ""), sessionId: deal.sessionId,
      timestamp: new Date().toISOString(), sender: { agentId: AGENT }, performative, content: { body: { ...body, ...fill } },
      sequenceNumber: n + 1, integrity: { previousHash: hash },
    };
    envelope.integrity.signature = "ed25519:" + hex(key.sign(bytes(jcs(envelope))));
    const { error } = await ask(`submit.${deal.sessionId}`, envelope);
    if (error && error.code !== "chain_conflict" && error.code !== "duplicate") { // it would be again: wait
      return console.log(`${performative} is refused: ${error.code}`);
    }
    deal = await ask("api.session.snapshot", { sessionId: deal.sessionId }); // it is said, or somebody was faster: decide anew
    if (deal.error) return;
  }
}

// The broker goes on from what it gave this worker. A turn that still waits comes again when the wait ends.
for (const worker = crypto.randomUUID(); ;) {
  const news = await ask("api.turn.wait", { worker, seconds: 50 });
  if (news.error) throw new Error(news.error.message);
  if (news.snapshot) await answer(news.snapshot);
}
