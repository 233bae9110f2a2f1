// A buyer and a vendor that have the five tools of MCP alone make a purchase with three offers. It
// prints what the definitions and each side's calls cost a model, in tokens.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { encode } from 'gpt-tokenizer'

const spent = { definitions: 0 }

async function connect(side, token) {
  const client = new Client({ name: side, version: '1' })
  const headers = { Authorization: `Bearer ${token}` }
  const url = new URL(process.env.URL)
  url.search = ''
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }))
  const { tools } = await client.listTools()
  spent.definitions = encode(JSON.stringify(tools)).length
  spent[side] = { calls: 0, bytes: 0, tokens: 0 }
  return async (name, args = {}) => {
    const result = await client.callTool({ name, arguments: args })
    const [{ text }] = result.content
    if (result.isError) throw new Error(`${side}: ${name}: ${text}`)
    const whole = JSON.stringify({ name, arguments: args }) + JSON.stringify(result)
    spent[side].calls++
    spent[side].bytes += Buffer.byteLength(whole)
    spent[side].tokens += encode(whole).length
    return JSON.parse(text)
  }
}

const seconds = 50
const buyer = await connect('buyer', process.env.BUYER)
const vendor = await connect('vendor', process.env.VENDOR)

async function sell() {
  const { negotiationId } = await vendor('wait_for_turn')
  const respond = (action, more) => vendor('respond_to_negotiation', { negotiationId, action, ...more })
  await respond('accept', { seconds })
  await respond('counter', { terms: { price: 6 }, seconds })
  await respond('accept')
  await respond('commit', { terms: { obligations: [{ party: process.env.VENDOR_URI, action: 'deliver 1,000 cups' }] } })
}

async function buy() {
  const { negotiationId, next } = await buyer('open_negotiation', { with: [process.env.VENDOR_URI], purpose: '1,000 cups', terms: { price: 4, count: 1000 }, seconds })
  const { head } = await buyer(next.tool, next.arguments)
  await buyer('respond_to_negotiation', { negotiationId, action: 'counter', terms: { price: 5 }, ifHead: head, seconds })
  await buyer('wait_for_turn', { negotiationId })
  const { state } = await buyer('respond_to_negotiation', { negotiationId, action: 'accept' })
  return state
}

const [state] = await Promise.all([buy(), sell()])
console.log(JSON.stringify({ state, ...spent }))
process.exit(0)
