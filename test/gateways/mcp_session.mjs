// A buyer and a vendor that use the TypeScript SDK of MCP negotiate at URL, with their tokens.
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

async function connect(token) {
  const client = new Client({ name: 'typescript', version: '1' })
  const headers = { Authorization: `Bearer ${token}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(process.env.URL), { requestInit: { headers } }))
  await client.listTools() // so that results are held to their schemas
  return async (name, args = {}) => {
    const result = await client.callTool({ name, arguments: args })
    return result.isError ? { refused: result.content[0].text } : result.structuredContent
  }
}

const buyer = await connect(process.env.BUYER)
const vendor = await connect(process.env.VENDOR)
const { sessionId, next } = await buyer('open_session', { with: [process.env.VENDOR_URI], purpose: '1,000 cups', invitationTimeoutMs: 600000 })
const invited = await vendor('wait_for_turn')
assert.equal(invited.status, 'turn')
await vendor('accept', { sessionId, referenceId: invited.referenceId })
assert.equal((await buyer(next.tool, next.arguments)).status, 'news')
assert.match((await buyer('accept', { sessionId, referenceId: 'nothing' })).refused, /proposal_unknown|wrong_state/)
await buyer('propose', { sessionId, type: 'service-agreement', subject: 'cups', terms: { price: 5 } })
const offer = await vendor('wait_for_turn', { sessionId })
const countered = await vendor('counter', { sessionId, referenceId: offer.referenceId, terms: { price: 6 } })
const turn = await buyer('wait_for_turn', { sessionId })
assert.equal(turn.referenceId, countered.referenceId)
await buyer('accept', { sessionId, referenceId: turn.referenceId })
const verified = await buyer('verify_transcript', { sessionId })
assert.equal(verified.verified, true)
await vendor('close', { sessionId, outcome: 'completed' })
const listed = await buyer('list_negotiations', { status: 'completed' })
assert.equal(listed.success, true)
console.log(JSON.stringify({ sessionId, entries: verified.entries, listed: listed.data.count }))
process.exit(0)
