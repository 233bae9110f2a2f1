// Two parties negotiate by OAP's RFC-0002 over HTTP, with nothing but Node's own crypto and
// fetch. They print the agreement.
import { createHash, createHmac, createPrivateKey, createPublicKey, randomBytes, sign, verify } from "node:crypto";

// jcs is RFC 8785: JavaScript writes texts and numbers as it wants them.
const jcs = (v) =>
  Array.isArray(v) ? `[${v.map(jcs)}]`
    : v !== null && typeof v === "object"
      ? `{${Object.keys(v).filter((k) => v[k] !== undefined).sort().map((k) => `${JSON.stringify(k)}:${jcs(v[k])}`)}}`
      : JSON.stringify(v);
const digest = (text) => "sha256-" + createHash("sha256").update(text).digest("hex");
const must = (right, what) => { if (!right) throw new Error(what); };

const party = (name) => {
  const seed = Buffer.from(process.env["SEED_" + name], "hex");
  const key = createPrivateKey({ key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]), format: "der", type: "pkcs8" });
  const over = (text) => sign(null, Buffer.from(text), key).toString("base64url");
  return {
    did: process.env["DID_" + name], public: createPublicKey(key), over,
    signed: (document) => ({ ...document, signature: over(jcs(document)) }),
    ask: async (method, path, body, want = 200) => {
      const reply = await fetch(`${process.env.BASE}/oap/negotiation/${path}`, {
        method, headers: { authorization: `Bearer ${process.env["TOKEN_" + name]}` }, body: body && JSON.stringify(body),
      });
      const said = await reply.json();
      must(reply.status === want, `${method} ${path}: ${reply.status} ${JSON.stringify(said)}`);
      return said;
    },
  };
};

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const agreementID = (session, proposal) => {
  const sum = createHash("sha256").update(`${session}:${proposal}`).digest();
  const bits = [...sum].map((b) => b.toString(2).padStart(8, "0")).join("");
  return "agr_" + Array.from({ length: 26 }, (_, i) => crockford[parseInt(bits.slice(5 * i, 5 * i + 5), 2)]).join("");
};

// core is what a proposal's agreement_hash is of.
const core = (p) => {
  const session = p.negotiation_id.replace("neg_", ""), salt = Buffer.from(p.agreement_salt, "base64url");
  const terms_digests = Object.fromEntries(Object.keys(p.terms).map((k) =>
    [k, digest(jcs([createHmac("sha256", salt).update(k).digest("base64url"), k, p.terms[k]]))]));
  return {
    agreement_id: agreementID(session, p.proposal_id.replace("prp_", "")), negotiation_id: p.negotiation_id, parties: [p.from, p.to],
    category: p.category, terms_digests, effective_from: p.effective_from, effective_until: p.effective_until,
  };
};

const propose = (from, to, negotiation_id, proposal_id, previous_proposal_id, round, terms) => {
  const p = {
    proposal_id, negotiation_id, previous_proposal_id, from: from.did, to: to.did, round, category: "pricing", terms,
    valid_until: new Date(Date.now() + 3600_000).toISOString(), effective_from: "2026-05-04T00:00:00Z", effective_until: "2026-11-04T00:00:00Z",
    agreement_salt: randomBytes(32).toString("base64url"),
  };
  p.agreement_signature = from.over(digest(jcs(core(p))));
  return from.signed(p);
};

const a = party("A"), b = party("B");
const { negotiation_id: id } = await a.ask("POST", "open", { to: b.did, category: "pricing" }, 201);
const terms = { action: "weather.forecast.detailed", calls_per_month: 100000, price_per_call_eur: "0.0030", billing_interval: "month", share: 0.25 };
await a.ask("POST", `${id}/propose`, propose(a, b, id, "prp_01HX2QFP4N8R5T6V7W8X9Y0Z1A", null, 1, terms));
const counter = propose(b, a, id, "prp_01HX2QFP4N8R5T6V7W8X9Y0Z1B", "prp_01HX2QFP4N8R5T6V7W8X9Y0Z1A", 2, { ...terms, price_per_call_eur: "0.0040" });
await b.ask("POST", `${id}/propose`, counter);
const { state, history } = await a.ask("GET", id);
must(state === "countered" && history.length === 2, `the negotiation is ${state}`);
const offered = history[1].document, { signature, ...unsigned } = offered;
must(verify(null, Buffer.from(jcs(unsigned)), b.public, Buffer.from(signature, "base64url")), "b has not signed its proposal");
const draft = await a.ask("GET", `${id}/draft/${offered.proposal_id}`);
must(jcs(draft) === jcs(core(offered)), `the draft is ${jcs(draft)}`);
const stolen = b.signed({ proposal_id: offered.proposal_id, agreement_signature: b.over(digest(jcs(draft))) });
must((await a.ask("POST", `${id}/accept`, stolen, 401)).error.code === "auth_required", "a stolen signature");
const agreement = await a.ask("POST", `${id}/accept`, a.signed({ proposal_id: offered.proposal_id, agreement_signature: a.over(digest(jcs(draft))) }));
must(agreement.agreement_hash === digest(jcs(draft)), "the agreement has another hash");
for (const p of [a, b]) {
  must(verify(null, Buffer.from(agreement.agreement_hash), p.public, Buffer.from(agreement.signatures[p.did], "base64url")), `${p.did} has not signed`);
}
must((await b.ask("POST", `${id}/withdraw`, {}, 401)).error.code === "auth_required", "a withdrawal that nobody signed");
must((await b.ask("POST", `${id}/withdraw`, b.signed({ proposal_id: counter.proposal_id }), 409)).error.code === "conflict", "a withdrawal after the acceptance");
console.log(jcs(agreement));
