// Package login decides who may connect to NATS, and which subjects they may use.
//
//	stop, err := login.Serve(nc, issuer, func(publicKey string) (login.Identity, bool) {
//		token, found := registered(publicKey)
//		return login.Identity{Name: token, Role: login.Principal}, found
//	}, nil, log)
//
// Invariants:
//   - Every login has signed the server's nonce with a registered key. The server leaves this
//     check to the callout, so this package makes it.
//   - A principal publishes and reads under its own token only (PROTOCOL.md §2). Only the
//     broker has more of JetStream than reading and acknowledging an inbox.
//   - Each role has its own account, because permissions do not apply to reply subjects: a
//     principal can have a reply sent to any subject of its account. So no other role may
//     depend on that account.
package login

import (
	"cmp"
	"fmt"
	"regexp"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/parley-asp/parley/api"
)

// The accounts of a parley server.
const (
	SystemAccount     = "SYS"        // the server's own events
	BrokerAccount     = "ASP"        // JetStream and the broker, nobody else (PROTOCOL.md §2)
	PrincipalsAccount = "PRINCIPALS" // agents and humans; in development everybody
	OperatorsAccount  = "OPERATORS"  // the people who run this server
	CalloutAccount    = "AUTH"       // the login service
)

// Role determines what a connection may do.
type Role string

// The roles that can log in.
const (
	Principal Role = "principal" // an agent or a human that takes part in sessions
	Operator  Role = "operator"  // somebody who runs this server
	Broker    Role = "broker"    // a login with the broker's bare key, for inspecting the store
)

// OperatorName is the name of every operator's login. It cannot be the token of a principal,
// because tokens contain "~" (PROTOCOL.md §1).
const OperatorName = "operator"

// BrokerName is the name of a login with the broker's key.
const BrokerName = "broker"

// Identity is the owner of a key.
type Identity struct {
	Name string // a principal's subject token, OperatorName or BrokerName
	Role Role

	// Inbox is the stream that a principal's inbox is in; "" is ASP_INBOX.
	Inbox string

	// Groups are the consumers on ASP_ESCALATIONS that a human shares with colleagues.
	Groups []string
}

// group matches the name of such a consumer: the organisation's token and the group's name.
var group = regexp.MustCompile(`^[a-z0-9_=-]+~[A-Za-z0-9_-]+$`)

// token matches a principal's subject token (PROTOCOL.md §1): an optional "@", the host, and one
// or more path segments.
var token = regexp.MustCompile(`^@?[a-z0-9_=-]+(~[a-z0-9_=-]+)+$`)

// Answering is how long a principal may answer a request that reaches it: the broker's, of a wakeup.
const Answering = 10 * time.Second

const maxToken = 200 // bytes, PROTOCOL.md §1

// InboxPrefix is the prefix of the reply inboxes that the identity may subscribe to.
func (id Identity) InboxPrefix() string { return "_INBOX." + id.Name }

// User is the user name of the identity's connections. It includes the key, so that the
// connections of a removed key can be found.
func (id Identity) User(publicKey string) string { return id.Name + "/" + publicKey }

// Account is the account of the identity's connections.
func (id Identity) Account() string {
	switch id.Role {
	case Operator:
		return OperatorsAccount
	case Broker:
		return BrokerAccount
	case Principal:
	}
	return PrincipalsAccount
}

// What an operator may ask of JetStream, and which of its events it receives: streams, consumers, disk and elections, but
// not the advisory of API requests, which has what was asked and answered.
var (
	Inspections = []string{
		"$JS.API.INFO", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST",
		"$JS.API.CONSUMER.LIST.*", "$JS.API.CONSUMER.NAMES.*",
	}
	Elections = []string{"$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.*", "$JS.EVENT.ADVISORY.STREAM.QUORUM_LOST.*"}
)

// Permissions lists the subjects that the identity may publish and subscribe to. It refuses a
// name with a wildcard or more than one token, which would match the subjects of others.
func Permissions(id Identity) (jwt.Permissions, error) {
	var may jwt.Permissions
	may.Sub.Allow = jwt.StringList{id.InboxPrefix() + ".>"}
	switch id.Role {
	case Principal:
		if len(id.Name) > maxToken || !token.MatchString(id.Name) {
			return jwt.Permissions{}, fmt.Errorf("login: %q is not the token of a principal", id.Name)
		}
		may.Pub.Allow = jwt.StringList{"asp.agent." + id.Name + ".submit.*", "asp.agent." + id.Name + ".api.*.*"}
		may.Sub.Allow = append(may.Sub.Allow, api.AllDiscovery)
		may.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: Answering}
		// No wildcards for stream and consumer: with them, "+NXT" would read the inboxes of
		// others. So session consumers have a fixed set of names.
		inbox := cmp.Or(id.Inbox, api.InboxStream)
		for _, consumer := range append([]string{id.Name}, api.SessionConsumers(id.Name)...) {
			may.Pub.Allow = append(may.Pub.Allow, "$JS.API.CONSUMER.INFO."+inbox+"."+consumer,
				"$JS.API.CONSUMER.MSG.NEXT."+inbox+"."+consumer, "$JS.ACK."+inbox+"."+consumer+".>")
		}
		for _, name := range id.Groups {
			if !group.MatchString(name) {
				return jwt.Permissions{}, fmt.Errorf("login: %q is not the consumer of a group", name)
			}
			may.Pub.Allow = append(may.Pub.Allow, "$JS.API.CONSUMER.INFO.ASP_ESCALATIONS."+name,
				"$JS.API.CONSUMER.MSG.NEXT.ASP_ESCALATIONS."+name, "$JS.ACK.ASP_ESCALATIONS."+name+".>")
		}
	case Operator:
		if id.Name != OperatorName {
			return jwt.Permissions{}, fmt.Errorf("login: an operator is named %q, not %q", OperatorName, id.Name)
		}
		may.Pub.Allow = append(jwt.StringList{"asp.operator.api.*.*", "$SRV.>"}, Inspections...)
		may.Sub.Allow = append(append(may.Sub.Allow, "asp.event.>", "asp.escalation.>"), Elections...)
	case Broker:
		if id.Name != BrokerName {
			return jwt.Permissions{}, fmt.Errorf("login: the broker is named %q, not %q", BrokerName, id.Name)
		}
		return jwt.Permissions{}, nil // everything in its own account
	default:
		return jwt.Permissions{}, fmt.Errorf("login: no role %q", id.Role)
	}
	return may, nil
}
