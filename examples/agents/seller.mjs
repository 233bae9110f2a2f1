// A seller, a worker on the shared inbox: it accepts invitations and asks for two more than it is offered.
// AGENT, SEED (SU…, signs), LOGIN (SU…, logs in) and NATS (a URL) come from the environment; test/languages runs this file.
// In a browser, the first import and connect go away: wsconnect speaks to `parley serve --websocket`.
import { connect } from "@nats-io/transport-node";
import { nkeyAuthenticator, nkeys, wsconnect } from "@nats-io/nats-core";
import { jetstream } from "@nats-io/jetstream";

const { AGENT, SEED, LOGIN, NATS } = process.env;

function token(uri) {
  const name = new TextEncoder().encode(uri.replace(/^\w+:\/\//, ""));
  const other = { ".": "_", "/": "~" };
  const write = (b) => {
    const c = String.fromCharCode(b);
    return /[a-z0-9-]/.test(c) ? c : other[c] ?? "=" + b.toString(16).padStart(2, "0");
  };
  return (uri.startsWith("human://") ? "@" : "") + Array.from(name, write).join("");
}

function uuid7() {
  const raw = crypto.getRandomValues(new Uint8Array(16));
  new DataView(raw.buffer).setUint32(0, Math.floor(Date.now() / 65536));
  new DataView(raw.buffer).setUint16(4, Date.now() % 65536);
  raw[6] = (raw[6] & 0x0f) | 0x70;
  raw[8] = (raw[8] & 0x3f) | 0x80;
  const hex = Array.from(raw, (b) => b.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

// RFC 8785: JavaScript writes numbers and strings as it wants them, and sorts keys as it does.
function jcs(v) {
  if (Array.isArray(v)) return `[${v.map(jcs)}]`;
  if (v === null || typeof v !== "object") return JSON.stringify(v);
  return `{${Object.keys(v).sort().map((k) => `${JSON.stringify(k)}:${jcs(v[k])}`)}}`;
}

const bytes = (text) => new TextEncoder().encode(text);
const key = nkeys.fromSeed(bytes(SEED));
const options = { servers: NATS, authenticator: nkeyAuthenticator(bytes(LOGIN)), inboxPrefix: `_INBOX.${token(AGENT)}` };
if (NATS.startsWith("ws") && !globalThis.WebSocket) { // Node before 22
  globalThis.WebSocket = (await import("ws")).WebSocket;
}
const nc = NATS.startsWith("ws") ? await wsconnect(options) : await connect(options);

async function say(session, act, body) {
  const envelope = {
    version: "asp/0.1", messageId: uuid7(), sessionId: session, timestamp: new Date().toISOString(),
    sender: { agentId: AGENT }, performative: act, content: { body }, integrity: {},
  };
  const signature = key.sign(bytes(jcs(envelope)));
  envelope.integrity.signature = "ed25519:" + Array.from(signature, (b) => b.toString(16).padStart(2, "0")).join("");
  const reply = await nc.request(`asp.agent.${token(AGENT)}.submit.${session}`, JSON.stringify(envelope), { timeout: 10_000 });
  const answer = reply.json();
  if (answer.error) throw new Error(`${answer.error.code}: ${answer.error.message}`);
}

async function answer({ sessionId, performative, content: { body } }) {
  if (performative === "PROPOSE" && body.type === "session-invitation") {
    await say(sessionId, "ACCEPT", { referenceId: body.proposalId });
  } else if (performative === "PROPOSE") {
    const terms = { ...body.terms, pricePerImage: body.terms.pricePerImage + 2 };
    await say(sessionId, "COUNTER", { proposalId: uuid7(), referenceId: body.proposalId, terms });
  }
}

const handled = new Map(); // session → sequenceNumber
const inbox = await jetstream(nc).consumers.get("ASP_INBOX", token(AGENT));
for await (const message of await inbox.consume({ max_messages: 10 })) {
  const entry = message.json();
  if (entry.sequenceNumber > (handled.get(entry.sessionId) ?? -1)) {
    const alive = setInterval(() => message.working(), 10_000);
    await answer(entry).finally(() => clearInterval(alive));
    handled.set(entry.sessionId, entry.sequenceNumber);
  }
  message.ack();
  if (entry.performative === "CLOSE") break;
}
await nc.close();
