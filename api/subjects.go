package api

import (
	"errors"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/parley-asp/parley/performatives"
)

// Names of the streams and buckets.
const (
	SessionsStream     = "ASP_SESSIONS"
	InboxStream        = "ASP_INBOX"
	EscalationsStream  = "ASP_ESCALATIONS"
	CaseLogStream      = "ASP_CASES"
	TimersStream       = "ASP_TIMERS"
	IndexStream        = "ASP_INDEX"
	ArchiveStream      = "ASP_ARCHIVE"
	ArchiveIndexStream = "ASP_CATALOGUE"
	AgentsBucket       = "ASP_AGENTS"
	SchemasBucket      = "ASP_SCHEMAS"
	BrokersBucket      = "ASP_BROKERS"
	EnrolBucket        = "ASP_ENROLMENTS"
	KeysBucket         = "ASP_KEYS"
	IdempotencyBucket  = "ASP_IDEMPOTENCY"
	ClaimsBucket       = "ASP_CLAIMS"
	MACPBucket         = "ASP_MACP"
	PrivateBucket      = "ASP_PRIVATE"
	WakeupsBucket      = "ASP_WAKEUPS"
	SeenBucket         = "ASP_SEEN"
	A2ABucket          = "ASP_A2A"
	RestoringStream    = "ASP_RESTORING" // is there until a restore has ended
	LogStream          = "ASP_LOG"
	LedgerBucket       = "ASP_LEDGER"
	RestoredKey        = "restored"   // of the ledger's bucket: what the log was restored from
	BrokerKeysKey      = "keys"       // of the ledger's bucket: every key that signed receipts
	ExpiryKey          = "expiry"     // of the ledger's bucket: sessions that are over are, or were, deleted after a time
	SecretNameKey      = "secret"     // of the ledger's bucket: which broker.secret it is of
	CheckpointKey      = "checkpoint" // of the ledger's bucket: the newest that witnesses have cosigned
)

// StreamOf is the stream that a key-value bucket is in.
func StreamOf(bucket string) string { return "KV_" + bucket }

// Subjects with wildcards, for streams, endpoints and subscriptions.
const (
	AllSessions    = "asp.session.*"
	AllInboxes     = "asp.agent.*.inbox.*"
	AllEscalations = "asp.escalation.*.*.*"
	AllCaseLogs    = CaseLogs + "*.*"
	AllPeople      = "asp.people.*.*"
	AllIndex       = "asp.index.*"      // sessions that are not over
	AllOver        = "asp.index.over.*" // those that are
	AllArchive     = "asp.archive.*"
	AllSubmits     = "asp.agent.*.submit.*"
	AllCalls       = "asp.agent.*.api.*.*"
	AllSays        = "asp.agent.*.api.session.say"
	AllOperator    = "asp.operator.api.*.*"
	AllEvents      = "asp.event.>"
	AllLeaves      = "asp.log.*.*"
	AllDiscovery   = "asp.discovery.>" // calls for proposals
)

// ArchiveIndexPage is the subject of the archive's index, many sessions to a message.
const ArchiveIndexPage = "asp.catalogue.page"

// Inboxes is what the reply subjects of principals begin with; their token follows. In the broker's
// account they begin with Wakeups.
const (
	Inboxes = "_INBOX."
	Wakeups = "asp.wakeup."
)

// ServiceName is the broker's name as a NATS micro service, and its queue group.
const ServiceName = "asp"

// Submit is where a principal sends the envelopes of a session.
func Submit(a performatives.Agent, s performatives.SessionID) string {
	return "asp.agent." + a.Token() + ".submit." + string(s)
}

// Inbox is where a principal receives those of the others.
func Inbox(a performatives.Agent, s performatives.SessionID) string {
	return "asp.agent." + a.Token() + ".inbox." + string(s)
}

// CaseLogs is what the subjects of all case logs begin with.
const CaseLogs = "asp.case."

// Forwarded is what stands before the subject of a request that one broker
// forwards to another.
func Forwarded(broker string) string { return "asp.broker." + broker + "." }

// A server elsewhere can route acts to the broker that owns the partition of their
// session. It knows nothing of sessions and brokers: a mapping in the brokers' account,
// of AllSubmits to RouteMapping, names one of so many partitions, and brokers
// subscribe to those. Principals are in another account, where these subjects lead
// nowhere.
const (
	Partitions   = 128
	AllRouted    = "asp.route.*.agent.*.submit.*"
	RouteMapping = "asp.route.{{partition(128,2)}}.agent.{{wildcard(1)}}.submit.{{wildcard(2)}}"

	// OldRouted is AllRouted where the server's mapping was made up to the end of 2026.
	OldRouted = "asp.home.*.agent.*.submit.*"
)

// Routed is all that the server routes to the owner of a partition.
func Routed(partition int) string {
	return "asp.route." + strconv.Itoa(partition) + ".agent.*.submit.*"
}

// PartitionOf is the partition of a session, as the server finds it.
func PartitionOf[T ~string](s T) int {
	h := fnv.New32a()
	h.Write([]byte(s))
	return int(h.Sum32() % Partitions)
}

// Unrouted is the submit subject of which the server made this one.
func Unrouted(subject string) (submit string, is bool) {
	t := strings.SplitN(subject, ".", 4)
	if len(t) < 4 || t[0] != "asp" || t[1] != "route" && t[1] != "home" {
		return "", false
	}
	return "asp." + t[3], true
}

// InboxOf is all that a principal receives.
func InboxOf(a performatives.Agent) string { return "asp.agent." + a.Token() + ".inbox.*" }

// InboxesOf is all that principals receive of a session.
func InboxesOf(s performatives.SessionID) string { return "asp.agent.*.inbox." + string(s) }

// MaxSessionConsumers is how many session consumers a principal may have at once. Their names are
// fixed, because the permissions of a login name them (login.Permissions).
const MaxSessionConsumers = 32

// SessionConsumers are the names of a principal's session consumers on ASP_INBOX. No token contains "+".
func SessionConsumers(token string) []string {
	names := make([]string, MaxSessionConsumers)
	for n := range names {
		names[n] = token + "+" + strconv.Itoa(n)
	}
	return names
}

// Call is where a principal calls an api verb such as "session.get".
func Call(a performatives.Agent, verb string) string {
	return "asp.agent." + a.Token() + ".api." + verb
}

// OperatorCall is where an operator calls a verb, and sees all.
func OperatorCall(verb string) string { return "asp.operator.api." + verb }

// Session is the subject of a session's transcript.
func Session(s performatives.SessionID) string { return "asp.session." + string(s) }

// Archive is the subject of an ended session in the archive.
func Archive(s performatives.SessionID) string { return "asp.archive." + string(s) }

// Index is the subject of a session's row in the session list.
func Index(s performatives.SessionID) string { return "asp.index." + string(s) }

// IndexOver is the subject of the row of a session that has ended.
func IndexOver(s performatives.SessionID) string { return "asp.index.over." + string(s) }

// Leaf is the subject of the one leaf that the public log has of an agreement or a session.
func Leaf(kind, id string) string { return "asp.log." + kind + "." + id }

// Event is where monitors are told of a session.
func Event(s performatives.SessionID, kind string) string {
	return "asp.event." + string(s) + "." + kind
}

// Escalation is the subject of one item of the escalation inbox.
func Escalation(org performatives.Organisation, urgency, id string) string {
	return "asp.escalation." + org.Token() + "." + urgency + "." + id
}

// CaseLogOf is the subject of the case log of one escalation.
func CaseLogOf(org performatives.Organisation, id string) string {
	return CaseLogs + org.Token() + "." + id
}

// PeopleOf is the subject of what happens to a human's keys, by which nothing is
// decided but everything signed; to "*" for all of an organisation.
func PeopleOf(org performatives.Organisation, token string) string {
	return "asp.people." + org.Token() + "." + token
}

// IsOfPeople reports whether a subject is such a one.
func IsOfPeople(subject string) bool { return strings.HasPrefix(subject, "asp.people.") }

// EscalationsOf is all items of an organisation.
func EscalationsOf(org performatives.Organisation) string {
	return "asp.escalation." + org.Token() + ".*.*"
}

// GroupConsumer is the durable consumer on ASP_ESCALATIONS of a group of approvers.
func GroupConsumer(org performatives.Organisation, group string) string {
	return org.Token() + "~" + group
}

// IsGroupConsumer reports whether a name is of such a consumer.
func IsGroupConsumer(name string) bool { return strings.Contains(name, "~") }

var errSubject = errors.New("not a subject of this shape")

// ParseSubmit takes a submit subject apart and insists on its exact shape.
func ParseSubmit(subject string) (performatives.Agent, performatives.SessionID, error) {
	t := strings.Split(subject, ".")
	if len(t) != 5 || t[0] != "asp" || t[1] != "agent" || t[3] != "submit" {
		return "", "", errSubject
	}
	a, err := performatives.ParseToken(t[2])
	if err != nil {
		return "", "", err
	}
	s, err := performatives.ParseSessionID(t[4])
	return a, s, err
}

// ParseCall takes the subject of an api call apart.
func ParseCall(subject string) (a performatives.Agent, verb string, err error) {
	t := strings.Split(subject, ".")
	if len(t) != 6 || t[0] != "asp" || t[1] != "agent" || t[3] != "api" {
		return "", "", errSubject
	}
	a, err = performatives.ParseToken(t[2])
	return a, t[4] + "." + t[5], err
}
