/** Faults between the broker of the test kit and an agent: a proxy that breaks connections, and repeats what it carries. */

import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

interface Place {
  host: string;
  port: number;
}

/** A head, with its body. */
type Part = readonly [head: string, body: string];
type Read = (socket: Socket) => AsyncGenerator<Part>;

const sizes = /(\r\ncontent-length: *|^H?(?:PUB|MSG) .* )(\d+)(?=\r\n)/i;
const acts = /^(POST \S+\/sessions\/\S+\/messages |PUB asp\.agent\.\S+\.submit\.)/;
const waits = /^(POST \S+\/turns\/wait |PUB asp\.agent\.\S+\.api\.turn\.wait )/;
const calls = /\r\nwebhook-id: /i;
const agents = /(?<=\r\nauthorization: )[^\r]+|(?<=^PUB )\S+/i;
const ids = /"messageId": *"[^"]+"/;

/** What goes wrong between a broker and the agents that reach it by `url` or `natsUrl`. */
export class Faults {
  /** The faults so far, such as `dropAnswers`, in their order. */
  readonly happened: ('dropAnswers' | 'redeliver' | 'kill')[] = [];
  #url = '';
  #natsUrl = '';
  #drops = 0;
  #redeliveries = 0;
  readonly #dropped = new Set<string>(); // acts
  readonly #asked = new Map<string, string>(); // by agent: what it asked last when it waited for news
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  private constructor(
    /** Restarts the broker. */
    readonly restart: () => Promise<void>,
  ) {}

  /** Faults before a broker at these addresses. */
  static async between(url: string, natsUrl: string, restart: () => Promise<void>): Promise<Faults> {
    const faults = new Faults(restart);
    faults.#url = `http://${await faults.#listen(placeOf(url), partsOf('\r\n\r\n'), chunks)}`;
    faults.#natsUrl = `nats://${await faults.#listen(placeOf(natsUrl), partsOf('\r\n'), partsOf('\r\n'))}`;
    return faults;
  }

  get url(): string { return this.#url; }
  get natsUrl(): string { return this.#natsUrl; }

  /** Of the next acts, the broker enters each, and the connection breaks before its answer. The same act again is answered. */
  dropAnswers(times = 1): void {
    this.#drops = times;
  }

  /** The next news, or calls to a URL of `inFrontOf`, come twice. */
  redeliver(times = 1): void {
    this.#redeliveries = times;
  }

  /** End the broker as a power failure does, and start it on the same data. */
  async kill(): Promise<void> {
    await this.restart();
    this.happened.push('kill');
  }

  /** A URL for `wakeup.set`, which leads to the agent's own. */
  async inFrontOf(url: string): Promise<string> {
    const to = new URL(url);
    to.host = await this.#listen(placeOf(url), partsOf('\r\n\r\n'), chunks);
    return to.href;
  }

  /** Break all connections, and listen no more. */
  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #listen(to: Place, asked: Read, answered: Read): Promise<string> {
    const server = createServer((socket) => this.#carry(socket, this.#hold(connect(to)), to, asked, answered));
    this.#servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  #hold(socket: Socket): Socket {
    this.#sockets.add(socket);
    return socket.on('close', () => this.#sockets.delete(socket)).on('error', () => undefined);
  }

  /** Carries one connection, until one of its ends breaks. */
  #carry(client: Socket, behind: Socket, to: Place, asked: Read, answered: Read): void {
    let cut: string | undefined; // what begins the answer before which the connection breaks
    const asks = async (): Promise<void> => {
      for await (let [head, body] of asked(client)) {
        const who = waits.test(head) ? agents.exec(head)?.[0] : undefined;
        if (acts.test(head) && this.#dropsAnswer(body)) {
          cut = head.split(/\s+/)[2]!; // HTTP/1.1, or the subject of the reply
        } else if (who !== undefined) {
          body = this.#asks(who, body);
          head = head.replace(sizes, (_, before: string) => `${before}${body.trimEnd().length}`);
        } else if (calls.test(head) && this.#redelivers()) {
          await this.#once(to, head + body);
        }
        behind.write(head + body, 'latin1');
      }
    };
    const answers = async (): Promise<void> => {
      for await (const [head, body] of answered(behind)) {
        if (cut !== undefined && head.split(' ', 2).includes(cut)) {
          this.happened.push('dropAnswers');
          return;
        }
        client.write(head + body, 'latin1');
      }
    };
    const end = (): void => {
      client.destroy();
      behind.destroy();
    };
    this.#hold(client);
    void Promise.race([asks(), answers()]).then(end, end);
  }

  /** Makes a call, and waits for its answer. */
  async #once(to: Place, call: string): Promise<void> {
    const socket = this.#hold(connect(to));
    socket.write(call, 'latin1');
    await new Promise<void>((resolve) => socket.once('data', () => resolve()).once('close', () => resolve()));
    socket.destroy();
  }

  #dropsAnswer(act: string): boolean {
    const which = ids.exec(act)?.[0] ?? act;
    if (this.#drops === 0 || this.#dropped.has(which)) return false;
    this.#drops--;
    this.#dropped.add(which);
    return true;
  }

  #redelivers(): boolean {
    if (this.#redeliveries === 0) return false;
    this.#redeliveries--;
    this.happened.push('redeliver');
    return true;
  }

  /** What an agent that waits for news asks: again what it asked last, if the news of then are to come again. */
  #asks(who: string, body: string): string {
    const before = this.#asked.get(who) ?? body;
    this.#asked.set(who, body);
    return before !== body && before.includes('"since"') && this.#redelivers() ? before : body;
  }
}

function placeOf(url: string): Place {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

/** Reads requests of HTTP, whose heads end with an empty line, or lines of NATS with their messages. */
function partsOf(end: '\r\n\r\n' | '\r\n'): Read {
  return async function* (socket) {
    let rest = '';
    for await (const chunk of socket) {
      rest += (chunk as Buffer).toString('latin1');
      for (let at = rest.indexOf(end); at >= 0; at = rest.indexOf(end)) {
        const head = rest.slice(0, at + end.length);
        const size = sizes.exec(head)?.[2];
        const whole = head.length + (size === undefined ? 0 : Number(size) + (end === '\r\n' ? 2 : 0));
        if (rest.length < whole) break;
        yield [head, rest.slice(head.length, whole)];
        rest = rest.slice(whole);
      }
    }
  };
}

async function* chunks(socket: Socket): AsyncGenerator<Part> {
  for await (const chunk of socket) yield [(chunk as Buffer).toString('latin1'), ''];
}
