// MCP's runner cannot be given a token. Loaded before it, this adds one to each of its requests,
// which go to the broker as it made them: those of fetch and undici, and those of node:http.
import { subscribe } from 'node:diagnostics_channel'

const authorization = `Bearer ${process.env.TOKEN}`
subscribe('undici:request:create', ({ request }) => request.addHeader('Authorization', authorization))
subscribe('http.client.request.created', ({ request }) => request.setHeader('Authorization', authorization))
