// A buyer that speaks A2A by its JavaScript SDK: verifies the agent's card, offers, escalates
// when the counter is too high, and accepts once a human has ruled.
import assert from 'node:assert/strict';
import { verifyAgentCardSignature } from '@a2a-js/sdk';
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';

const { A2A_URL, TOKEN, BINDING } = process.env;
const fetchImpl = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set('Authorization', `Bearer ${TOKEN}`);
  return fetch(input, { ...init, headers });
};
const card = await new DefaultAgentCardResolver({ fetchImpl }).resolve(A2A_URL + '/');
const { keys } = await (await fetch(`${A2A_URL}/.well-known/jwks.json`)).json();
const verify = verifyAgentCardSignature(async (kid) => keys.find((key) => key.kid === kid));
await verify(card);
await assert.rejects(verify({ ...card, name: 'Somebody else' }));

const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
  preferredTransports: [BINDING],
}));
const client = await factory.createFromAgentCard(card);
const INPUT_REQUIRED = 6, COMPLETED = 3, AUTH_REQUIRED = 8;
const states = [];
let task = '', context = '';

async function say(number, action) {
  const message = {
    messageId: `js-${BINDING}-${number}`, role: 1, parts: [{ content: { $case: 'data', value: action }, metadata: undefined, filename: '', mediaType: 'application/json' }],
    taskId: task, contextId: context, metadata: undefined, extensions: [], referenceTaskIds: [],
  };
  for await (const event of client.sendMessageStream({ tenant: '', message, configuration: undefined, metadata: undefined })) {
    const { $case, value } = event.payload;
    if ($case === 'task') [task, context] = [value.id, value.contextId];
    if ($case === 'task' || $case === 'statusUpdate') states.push(value.status.state);
  }
}

await say(1, { action: 'propose', purpose: 'cups', terms: { price: 5 } });
assert.equal(states.at(-1), INPUT_REQUIRED, `${states}`);
await say(2, { action: 'escalate', urgency: 'low', context: { price: 6 } });
assert(states.includes(AUTH_REQUIRED) && states.at(-1) === INPUT_REQUIRED, `${states}`);
await say(3, { action: 'accept' });
assert.equal(states.at(-1), COMPLETED, `${states}`);
const close = { action: 'close', outcome: 'completed' }; // which makes the agreement
await assert.rejects(say(4, close), /the task is over/);
const first = await client.getTask({ tenant: '', id: task });
task = '';
await say(5, close);
assert.equal(task, first.id + '.2');
assert.equal(states.at(-1), COMPLETED, `${states}`);
assert.deepEqual(await client.getTask({ tenant: '', id: first.id }), first);
const done = await client.getTask({ tenant: '', id: task });
const agreement = done.artifacts.find((a) => a.name === 'agreement').parts[0].content.value;
console.log(JSON.stringify({ task: first.id, history: first.history.length + done.history.length, price: agreement.terms.price, agreement: agreement.agreement_id }));
