/**
 * What the SDK costs beside nats.js by hand: a buyer in 128 sessions at once, over NATS with its own key.
 *
 *     npx tsc -p tsconfig.json && node dist-test/benchmarks/cost.js [--sessions 128] [--rounds 5]
 *
 * All buyers say the same six acts in each session; the seller is another process. What is counted is the CPU time of
 * this process; the buyers take turns, round by round, and of the rounds, and of the ratios in them, it prints the
 * medians. By hand it is counted twice: signed by node:crypto, and by nkeys, which nats.js comes with, and which is
 * written in JavaScript.
 */

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { createHash, createPrivateKey, sign } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { createInbox, nkeyAuthenticator, nkeys, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';

import { accept, agent, complete, counter, type Agent } from '../src/index.js';
import { nats } from '../src/nats.js';
import { rawSeed, tokenOf } from '../src/sign.js';
import { Broker } from '../src/testing.js';
import { Cups, cups, registered, SELLER } from '../test/agents.js';

const [most, least, first, last, rounds] = [100, 90, 60, 100, 4];
const acts = 6; // of the buyer in a session: it invites, offers, counters twice, accepts, closes

interface Keys { agent: string; seed: string; login: string }
interface Head { sequenceNumber: number; hash: string }
type Body = Record<string, unknown>;
type Sign = (data: Uint8Array) => Uint8Array;
interface Buyer extends AsyncDisposable { buy(sessions: number, key: string): Promise<void> }

/** The buyer as a reducer. */
class Sdk implements Buyer {
  readonly #agent: Agent<Cups>;

  constructor(servers: string, keys: Keys) {
    this.#agent = agent({ transport: nats({ connect, servers, ...keys }), terms: Cups }).onTurn((deal) => {
      if (deal.agreed) return complete();
      const offer = deal.theirOffer!;
      return offer.terms.price > most ? counter(offer, cups(deal.step(first, last, rounds))) : accept(offer);
    }).start();
  }

  async buy(sessions: number, key: string): Promise<void> {
    await Promise.all(Array.from({ length: sessions }, async (_, n) => {
      const deal = await this.#agent.negotiate(SELLER, 'cups', cups(first), { key: `${key} ${n}` });
      assert.equal(deal.agreed?.terms.price, least);
    }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.close();
  }
}

/** The same buyer by hand: pulls from its inbox, signed envelopes, requests. */
class Raw implements Buyer {
  readonly #token: string;
  readonly #offers = new Map<string, number>(); // made, of each session
  #left = 0; // messages that the newest pull may still bring
  #open = 0; // sessions
  #closed = (): void => undefined;

  private constructor(readonly connection: NatsConnection, readonly keys: Keys, readonly sign: Sign) {
    this.#token = tokenOf(keys.agent);
    const inbox = createInbox(`_INBOX.${this.#token}`);
    connection.subscribe(inbox, { callback: (_, message) => void this.#came(message, inbox) });
    this.#pull(inbox);
  }

  static async connected(servers: string, keys: Keys, sign: Sign): Promise<Raw> {
    const authenticator = nkeyAuthenticator(new TextEncoder().encode(keys.login));
    return new Raw(await connect({ servers, authenticator, inboxPrefix: `_INBOX.${tokenOf(keys.agent)}` }), keys, sign);
  }

  async buy(sessions: number, key: string): Promise<void> {
    this.#offers.clear();
    this.#open = sessions;
    const closed = new Promise<void>((resolve) => (this.#closed = resolve));
    const terms = { purpose: 'cups', participants: [SELLER] };
    const body = { proposalId: 'invitation', type: 'session-invitation', subject: 'cups', terms };
    await Promise.all(Array.from({ length: sessions }, (_, n) => this.#say(uuid7(key, `${n}`), 'PROPOSE', body)));
    await closed;
  }

  #pull(reply: string): void {
    this.#left = 100;
    const asked = JSON.stringify({ batch: this.#left, expires: 110e9 });
    this.connection.publish(`$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX.${this.#token}`, asked, { reply });
  }

  /** Answers what the seller said. */
  async #came(message: Msg, inbox: string): Promise<void> {
    if (message.headers?.code || --this.#left === 0) this.#pull(inbox);
    if (message.headers?.code) return; // the pull has ended
    const entry = message.json<{ sessionId: string; performative: string; sequenceNumber: number; content: { body: Body }; integrity: { hash: string } }>();
    const { sessionId, content: { body } } = entry;
    const head = { sequenceNumber: entry.sequenceNumber, hash: entry.integrity.hash };
    const { proposalId: referenceId, terms } = body as { proposalId: string; terms: Cups };
    if (entry.performative === 'ACCEPT') {
      await this.#say(sessionId, 'PROPOSE', { type: 'service-agreement', subject: 'cups', ...this.#offer(sessionId) }, head);
    } else if (terms.price > most) {
      await this.#say(sessionId, 'COUNTER', { referenceId, ...this.#offer(sessionId) }, head);
    } else {
      const accepted = await this.#say(sessionId, 'ACCEPT', { referenceId }, head);
      await this.#say(sessionId, 'CLOSE', { outcome: 'completed' }, accepted);
      if (--this.#open === 0) this.#closed();
    }
    message.respond();
  }

  #offer(session: string): Body {
    const made = this.#offers.get(session) ?? 0;
    this.#offers.set(session, made + 1);
    return { proposalId: `offer-${made}`, terms: cups(first + ((last - first) * made) / rounds) };
  }

  async #say(sessionId: string, performative: string, body: Body, head?: Head): Promise<Head> {
    const integrity: Record<string, string> = head ? { previousHash: head.hash } : {};
    const envelope = {
      version: 'asp/0.1', messageId: uuid7(sessionId, head?.hash ?? '', performative), sessionId, timestamp: new Date().toISOString(),
      sender: { agentId: this.keys.agent }, performative, content: { body }, integrity,
      ...(head ? { sequenceNumber: head.sequenceNumber + 1 } : {}),
    };
    integrity['signature'] = `ed25519:${Buffer.from(this.sign(new TextEncoder().encode(jcs(envelope)))).toString('hex')}`;
    const subject = `asp.agent.${this.#token}.submit.${sessionId}`;
    const answer = (await this.connection.request(subject, JSON.stringify(envelope), { timeout: 20_000 })).json<Head & { accepted: boolean }>();
    assert.ok(answer.accepted, JSON.stringify(answer));
    return answer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.connection.close();
  }
}

function uuid7(...of: string[]): string {
  const raw = createHash('sha256').update(of.join('\n')).digest().subarray(0, 16);
  raw[6] = (raw[6]! & 0x0f) | 0x70;
  raw[8] = (raw[8]! & 0x3f) | 0x80;
  return raw.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** RFC 8785, as in examples/agents/seller.mjs. */
function jcs(v: unknown): string {
  if (Array.isArray(v)) return `[${v.map(jcs).join(',')}]`;
  if (v === null || typeof v !== 'object') return JSON.stringify(v);
  return `{${Object.keys(v).sort().map((k) => `${JSON.stringify(k)}:${jcs((v as Body)[k])}`).join(',')}}`;
}

function byCrypto(seed: string): Sign {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), rawSeed(seed)]); // PKCS #8
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return (data) => sign(null, data, key);
}

function byNkeys(seed: string): Sign {
  const key = nkeys.fromSeed(new TextEncoder().encode(seed));
  return (data) => key.sign(data);
}

const median = (of: number[]): number => [...of].sort((a, b) => a - b)[of.length >> 1]!;

/** The seller: asks for 120 first, and comes down by 15. */
function sell(servers: string, keys: Keys): Agent<Cups> {
  return agent({ transport: nats({ connect, servers, ...keys }), terms: Cups })
    .onInvitation((deal) => accept(deal.invitation!))
    .onTurn((deal) => (deal.agreed ? undefined : counter(deal.theirOffer!, cups(Math.max(least, 120 - 15 * deal.round)))));
}

async function compare(servers: string, keys: Keys[], sessions: number, times: number): Promise<void> {
  const [one, two, three] = keys as [Keys, Keys, Keys];
  await using sdk = new Sdk(servers, one);
  await using crypto = await Raw.connected(servers, two, byCrypto(two.seed));
  await using js = await Raw.connected(servers, three, byNkeys(three.seed));
  const buyers = Object.entries({ SDK: sdk, 'by hand, node:crypto': crypto, 'by hand, nkeys': js }).map(([name, buyer]) => ({ name, buyer, took: [] as number[] }));
  for (let n = 0; n <= times; n++) {
    for (const { name, buyer, took } of buyers) {
      const began = process.cpuUsage();
      await buyer.buy(sessions, `${name} ${n}`);
      const { user, system } = process.cpuUsage(began);
      took.push((user + system) / sessions / 1000);
    }
  }
  const counted = buyers.map(({ name, took }) => ({ name, took: took.slice(1) })); // the first round warms up
  const ours = counted[0]!.took;
  console.log(`Node ${process.versions.node}, ${availableParallelism()} cores; ${sessions} sessions, ${times} rounds\n`);
  console.log('| CPU time | a session | an act | the SDK costs |\n|---|---|---|---|');
  for (const { name, took } of counted) {
    const [ms, ratio] = [median(took), median(took.map((its, n) => ours[n]! / its))];
    console.log(`| ${name} | ${ms.toFixed(2)} ms | ${(ms / acts).toFixed(2)} ms | ${ratio.toFixed(2)} × |`);
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { sessions: { type: 'string', default: '128' }, rounds: { type: 'string', default: '5' } } });
  await using broker = await Broker.start({ dev: false });
  const keys: Keys[] = [];
  for (const name of ['sdk', 'crypto', 'nkeys']) keys.push(await registered(broker, `agent://acme.com/${name}`));
  const sells = { SERVERS: broker.natsUrl, SELLS: JSON.stringify(await registered(broker, SELLER)) };
  const seller = fork(fileURLToPath(import.meta.url), { env: { ...process.env, ...sells } });
  try {
    await compare(broker.natsUrl, keys, Number(values.sessions), Number(values.rounds));
  } finally {
    seller.kill();
  }
}

const { SELLS, SERVERS } = process.env;
if (SELLS && SERVERS) await sell(SERVERS, JSON.parse(SELLS) as Keys).run();
else await main();
