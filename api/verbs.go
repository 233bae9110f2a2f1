package api

import (
	"reflect"
	"slices"

	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/evidence"
)

// A Role says who may call a verb.
type Role string

// Operators may call every verb: those of principals too, and they see all.
const (
	Principal Role = "principal"
	Operator  Role = "operator"
)

// An Access says whether a verb changes something that outlives the call.
type Access string

// The two of them.
const (
	Read  Access = "read"
	Write Access = "write"
)

// A Verb is one row of the table of verbs.
type Verb struct {
	Name     string // noun.verb
	Role     Role
	Access   Access
	Auditors bool // an auditor may call it
	Waits    bool // it may wait for something to happen, and does little work
	Once     bool // a repeat would do it again, so it is sent once
	Request  reflect.Type
	Reply    reflect.Type
	Doc      string // one line, without a full stop

	HTTP  Endpoint // "" of a verb that HTTP does not have
	Query []Query  // members that a query calls otherwise
	Body  string   // the member that is the whole body; "": the body has all members that are not in the path
	Tool  string   // the tool of MCP that calls it; "": none
}

// A VerbOf is a verb with the types of its request and its reply.
type VerbOf[Request, Reply any] struct{ Verb }

// The verbs (PROTOCOL.md §9), in the order of the document.
var (
	SessionGet = define[GetSession, SessionView]("session.get", Principal, Read,
		"one session as it is now, or a page of one of its parts", at("GET /sessions/{sessionId}"), tool("get_negotiation"))
	SessionSnapshot = define[GetSnapshot, Snapshot]("session.snapshot", Principal, Read,
		"one view of a deal: offers, what waits for whom, what the caller may send now, news", at("GET /sessions/{sessionId}/snapshot"))
	SessionList = define[ListSessions, Sessions]("session.list", Principal, Read,
		"the caller's sessions, newest first", at("GET /sessions"), tool("list_negotiations"))
	SessionMessages = define[ListMessages, Messages]("session.messages", Principal, Read,
		"a session's transcript: delivered envelopes in order", at("GET /sessions/{sessionId}/messages", Query{"since_sequence", "since"}, Query{"cursor", "since"}), tool("get_transcript"))
	SessionConsumer = define[AskConsumer, Consumer]("session.consumer", Principal, Write,
		"a pull consumer of one session's messages, by default strictly in order")
	SessionEvidence = define[GetEvidence, evidence.Bundle]("session.evidence", Principal, Read,
		"one file that proves what was agreed and what became of it, with proofs and receipts of the public log", at("GET /sessions/{sessionId}/evidence"))
	SessionSay = define[Say, Acceptance]("session.say", Principal, Write,
		"say an act as a hosted agent: the broker makes the envelope and signs it")

	TurnPickup = define[PickUpTurn, Turn]("turn.pickup", Principal, Write,
		"claim the turn that has waited longest for the caller; {} when none waits", at("POST /turns/pickup"))
	TurnRespond = define[RespondTurn, Acceptance]("turn.respond", Principal, Write,
		"answer a claimed turn", at("POST /turns/{turnId}/respond"), tool("respond_to_negotiation"))
	TurnRelease = define[ReleaseTurn, ReleasedTurn]("turn.release", Principal, Write,
		"end the claim on a turn, which waits again", at("POST /turns/{turnId}/release"))
	TurnWait = define[WaitTurn, WaitedTurn]("turn.wait", Principal, Read,
		"wait for news that the caller was not given, in one session or in all; claims nothing", at("POST /turns/wait"), tool("wait_for_turn"), waits)

	WakeupSet = define[SetWakeup, Wakeup]("wakeup.set", Principal, Write,
		"have a URL called, or a NATS subject asked, when something concerns the caller, in one session or in all; without either no more", at("PUT /sessions/{sessionId}/wakeup"))

	InsightsGet = define[GetInsights, Insights]("insights.get", Principal, Read,
		"how the sessions of the caller's organisation went that ended in a time", at("GET /insights"))

	CheckList = define[ListChecks, Checks]("check.list", Principal, Read,
		"what others delegated to the caller, newest session first", at("GET /checks"))
	CheckGet = define[SessionRef, Check]("check.get", Principal, Read,
		"what was delegated to the caller in one session, with the offer at stake", at("GET /checks/{sessionId}"))

	InboxMessages = define[ListInbox, InboxPage]("inbox.messages", Principal, Read,
		"what was delivered to the caller, in all its sessions; takes nothing from a consumer")

	AgreementGet = define[GetAgreement, agreement.Document]("agreement.get", Principal, Read,
		"an agreement as a document that proves itself, with its position in the public log", at("GET /agreements/{agreementId}"))
	AgreementList = define[ListAgreements, Agreements]("agreement.list", Principal, Read,
		"what the caller's sessions have agreed on, newest session first", at("GET /agreements"))

	ObligationList = define[ListObligations, Obligations]("obligation.list", Principal, Read,
		"what is due, overdue, to be answered or disputed in the caller's sessions, the first due first", at("GET /obligations"))
	DisputeList = define[ListDisputes, Disputes]("dispute.list", Principal, Read,
		"disputes in the caller's sessions that are not over, those of the newest session first", at("GET /disputes"))

	AgentRegister = define[RegisterAgent, Card]("agent.register", Principal, Write,
		"replace the caller's own card", at("PUT /agents/{agentId}/card"), body("card"))
	AgentRotate = define[RotateKey, Card]("agent.rotate", Principal, Write,
		"give a principal another key", auditors)
	HumanUnenrol = define[DeviceRef, Card]("human.unenrol", Principal, Write,
		"take an enrolled key away", auditors)
	HumanAway = define[SetAway, Card]("human.away", Principal, Write,
		"say who stands in for a human, and until when; without a stand-in, the human is back")
	AgentVerify = define[VerifyDomain, Card]("agent.verify", Principal, Write,
		"have the domain of an agent's URI vouch for its key, or an operator", waits)
	AgentJWT = define[AskUserJWT, UserJWT]("agent.jwt", Principal, Read,
		"the NATS user JWT for a principal's credentials file")
	AgentGet = define[AgentRef, Card]("agent.get", Principal, Read,
		"one principal's card", at("GET /agents/{agentId}/card"))
	AgentList = define[ListAgents, Agents]("agent.list", Principal, Read,
		"the cards of principals, by URI", at("GET /agents", Query{"min_trust", "minTrust"}))
	AgentSearch = define[SearchAgents, Agents]("agent.search", Principal, Read,
		"the cards of agents by capability, text, schema, trust and organisation", at("GET /discover", Query{"min_trust", "minTrust"}), tool("find_agents"))

	DiscoveryCall = define[CallForProposals, Proposals]("discovery.call", Principal, Read,
		"ask all agents that could do a task how well they fit, and rank them", at("POST /discover"), waits)
	DiscoveryAnswer = define[AnswerCall, Answered]("discovery.answer", Principal, Write,
		"an agent's own assessment in answer to a call")

	SchemaPut = define[PutSchema, Schema]("schema.put", Principal, Write,
		"register a terms schema, which never changes after that", at("PUT /schemas/{name}"))
	SchemaGet = define[SchemaRef, Schema]("schema.get", Principal, Read,
		"one body schema or terms schema", at("GET /schemas/{name}"))
	SchemaList = define[ListSchemas, SchemaNames]("schema.list", Principal, Read,
		"the names of all schemas", at("GET /schemas"))

	EscalationList = define[ListEscalations, Escalations]("escalation.list", Principal, Read,
		"the escalation inbox: open items first, the one due first at the top", at("GET /escalations"))
	EscalationGet = define[GetEscalation, EscalationItem]("escalation.get", Principal, Read,
		"one escalation with the transcript and the changes at stake, or a page of one of these", at("GET /escalations/{escalationId}"))
	EscalationClaim = define[ClaimEscalation, EscalationItem]("escalation.claim", Principal, Write,
		"hold an escalation for a while, so that colleagues decide others", at("POST /escalations/{escalationId}/claim"))
	EscalationRelease = define[EscalationRef, EscalationItem]("escalation.release", Principal, Write,
		"end a claim", at("POST /escalations/{escalationId}/release"))
	EscalationAssign = define[AssignEscalation, EscalationItem]("escalation.assign", Principal, Write,
		"say who is to decide, or that nobody in particular is", at("POST /escalations/{escalationId}/assign"))
	EscalationComment = define[CommentEscalation, EscalationItem]("escalation.comment", Principal, Write,
		"write to colleagues; agents and other organisations never see it", at("POST /escalations/{escalationId}/comment"), once)
	EscalationTransfer = define[TransferEscalation, EscalationItem]("escalation.transfer", Principal, Write,
		"pass an escalation to a colleague or to a later level of its route", at("POST /escalations/{escalationId}/transfer"), once)
	EscalationUnseal = define[UnsealEscalation, EscalationItem]("escalation.unseal", Principal, Write,
		"let the arbiter of the session read what one principal has sealed of an escalation", at("POST /escalations/{escalationId}/unseal"))
	EscalationHistory = define[ReadCaseLog, CaseLog]("escalation.history", Principal, Read,
		"everything that happened around an escalation, oldest first", at("GET /escalations/{escalationId}/history"))
	EscalationWatch = define[WatchEscalations, Watched]("escalation.watch", Principal, Read,
		"wait until an escalation changes", waits)

	BrokerInfo = define[struct{}, Broker]("broker.info", Principal, Read,
		"the broker's version and the key that verifies its receipts")
	BrokerStatus = define[struct{}, Status]("broker.status", Principal, Read,
		"how brokers, streams, limits and timers do; for operators, and humans with that role")

	AgentAdd = define[AddAgent, Card]("agent.add", Operator, Write,
		"register a principal, or replace its card and what the registry says of it")
	AgentHost = define[AgentRef, Card]("agent.host", Operator, Write,
		"make a signing key that the installation holds for an agent")
	AgentUnhost = define[AgentRef, Card]("agent.unhost", Operator, Write,
		"take away the signing key that the installation holds for an agent")
	AgentRemove = define[AgentRef, Card]("agent.rm", Operator, Write,
		"remove a principal from the registry")
	TokenAdd = define[AddToken, Token]("token.add", Operator, Write,
		"make a token for one principal; its secret is shown once")
	TokenList = define[ListTokens, Tokens]("token.list", Operator, Read,
		"tokens without their secrets, by id")
	TokenRemove = define[TokenRef, Token]("token.rm", Operator, Write,
		"remove a token, whose requests and streams end at once")
	SchemaRemove = define[SchemaRef, Schema]("schema.rm", Operator, Write,
		"remove a terms schema; its name stays taken")
	AuditSessions = define[ListAudit, AuditedSessions]("audit.sessions", Operator, Read,
		"every session that has a transcript, from the store")
	AuditMessages = define[AuditTranscript, Stored]("audit.messages", Operator, Read,
		"a transcript as it is stored, readable or not")
	AuditSession = define[AuditRef, Held]("audit.session", Operator, Read,
		"what the store holds of a session beside its transcript")
	SessionErase = define[EraseSession, ErasedSession]("session.erase", Operator, Write,
		"erase an archived session: hashes and receipts are left")
	HumanEnrol = define[EnrolHuman, Enrolment]("human.enrol", Operator, Write,
		"make a code by which a human's browser enrols a key of its own")
)

// table has every verb; define fills it.
var table []Verb

// Verbs is the whole table, in the order of the document.
func Verbs() []Verb { return slices.Clone(table) }

// VerbNamed is the verb of that name, or an empty one.
func VerbNamed(name string) Verb {
	if i := slices.IndexFunc(table, func(v Verb) bool { return v.Name == name }); i >= 0 {
		return table[i]
	}
	return Verb{}
}

// A trait is what few verbs have.
type trait func(*Verb)

func auditors(v *Verb) { v.Auditors = true } // although it writes
func waits(v *Verb)    { v.Waits = true }
func once(v *Verb)     { v.Once = true }

func at(e Endpoint, renamed ...Query) trait { return func(v *Verb) { v.HTTP, v.Query = e, renamed } }
func body(member string) trait              { return func(v *Verb) { v.Body = member } }
func tool(name string) trait                { return func(v *Verb) { v.Tool = name } }

func define[Request, Reply any](name string, role Role, access Access, doc string, traits ...trait) VerbOf[Request, Reply] {
	return VerbOf[Request, Reply]{enter(Verb{
		Name: name, Role: role, Access: access, Doc: doc, Request: reflect.TypeFor[Request](), Reply: reflect.TypeFor[Reply](),
	}, traits)}
}

// enter adds a verb to the table.
func enter(v Verb, traits []trait) Verb {
	v.Auditors = v.Role == Principal && v.Access == Read
	for _, has := range traits {
		has(&v)
	}
	table = append(table, v)
	return v
}

// Members lists the fields of a request or reply that are members of its JSON, those of
// embedded structs included.
func Members(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Anonymous || f.Tag.Get("json") == "-" })
}

// VerbNames are the names of the verbs that a role may call, sorted.
func VerbNames(role Role) []string {
	var names []string
	for _, v := range Verbs() {
		if role == Operator || v.Role == Principal {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}
