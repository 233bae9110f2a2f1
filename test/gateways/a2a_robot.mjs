// An agent that speaks A2A by its JavaScript SDK and signs its card. It counters an offer at 6.
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import express from 'express';
import { AgentCard, generateAgentCardSignature } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { UserBuilder, agentCardHandler, jsonRpcHandler } from '@a2a-js/sdk/server/express';

const robot = {
  async execute({ userMessage, contextId }, bus) {
    const act = userMessage.parts.find((part) => part.content.$case === 'data').content.value;
    const counters = act.performative === 'PROPOSE' && act.state === 'CONVERSING';
    const content = counters ? { $case: 'data', value: { action: 'counter', terms: { price: 6 } } } : { $case: 'text', value: 'Noted.' };
    bus.publish(AgentEvent.message({
      messageId: 'to-' + userMessage.messageId, contextId, taskId: '', role: 2, metadata: undefined, extensions: [], referenceTaskIds: [],
      parts: [{ content, metadata: undefined, filename: '', mediaType: '' }],
    }));
    bus.finished();
  },
  async cancelTask() {},
};

const app = express();
const server = createServer(app).listen(0, '127.0.0.1', async () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'robot', alg: 'EdDSA' };
  const sign = generateAgentCardSignature(privateKey, { alg: 'EdDSA', kid: 'robot', typ: 'JOSE', jku: url + '/keys' });
  const card = await sign(AgentCard.fromJSON({
    name: 'Robot', description: 'Sells cups.', version: '1', defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
    capabilities: { streaming: true }, skills: [{ id: 'sell', name: 'Sell', description: 'Sells.', tags: ['cups'] }],
    supportedInterfaces: [{ url: url + '/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  }));
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), robot);
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.get('/keys', (_, response) => response.json({ keys: [jwk] }));
  app.use('/', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  console.log(url);
});
