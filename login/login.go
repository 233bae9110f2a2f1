// Package login says who may connect to NATS and which subjects each of them may touch.
//
//	stop, err := login.Serve(nc, issuer, func(publicKey string) (login.Identity, bool) {
//		token, found := registered(publicKey)
//		return login.Identity{Name: token, Role: login.Principal}, found
//	}, log)
//
// Invariants:
//   - Whoever is let in has signed the server's nonce with the key that it is known by. The
//     server leaves that check to the callout, so it is made here.
//   - A principal publishes and reads under its own token only (PROTOCOL.md §2), and nobody
//     but the broker gets JetStream rights beyond reading and acknowledging its own inbox.
//   - Roles are kept apart by account, not by permission alone: a reply subject is never
//     checked against permissions, so a principal can have an answer delivered on any subject
//     of its own account. It must find nobody else's work there.
package login

import (
	"fmt"
	"regexp"

	"github.com/nats-io/jwt/v2"
)

// The accounts of a parley server.
const (
	SystemAccount     = "SYS"        // the server's own events
	BrokerAccount     = "ASP"        // JetStream and the broker, nobody else (PROTOCOL.md §2)
	PrincipalsAccount = "PRINCIPALS" // agents and humans; in development everybody
	OperatorsAccount  = "OPERATORS"  // those who run this server
	CalloutAccount    = "AUTH"       // the login service
)

// Role is what a connection is allowed to be.
type Role string

// The roles that can log in.
const (
	Principal Role = "principal" // an agent or a human that takes part in sessions
	Operator  Role = "operator"  // whoever runs this server
	Broker    Role = "broker"    // the broker, when it comes with its bare key: for looking inside
)

// OperatorName is the name of every operator's login. No principal's token equals it: a
// token has a "~" in it (PROTOCOL.md §1).
const OperatorName = "operator"

// BrokerName is the name of a login with the broker's key.
const BrokerName = "broker"

// Identity is who a key belongs to.
type Identity struct {
	Name string // a principal's subject token, OperatorName or BrokerName
	Role Role

	// Groups are the consumers on ASP_ESCALATIONS that a human reads with colleagues.
	Groups []string
}

// group is the shape of such a consumer's name: the organisation's token and the group's name.
var group = regexp.MustCompile(`^[a-z0-9_=-]+~[A-Za-z0-9_-]+$`)

// token is the shape of a principal's subject token (PROTOCOL.md §1): an optional "@", the
// host, and one or more path segments.
var token = regexp.MustCompile(`^@?[a-z0-9_=-]+(~[a-z0-9_=-]+)+$`)

const maxToken = 200 // bytes, PROTOCOL.md §1

// InboxPrefix is the prefix of the reply inboxes that the identity may subscribe to.
func (id Identity) InboxPrefix() string { return "_INBOX." + id.Name }

// User is the name that the server knows a connection of the identity by, and the key that it
// logged in with: so the connections of a key that is no longer good can be told from others.
func (id Identity) User(publicKey string) string { return id.Name + "/" + publicKey }

// Account is the account that the identity is placed in.
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

// Permissions lists all that the identity may publish and subscribe to. It fails on a name
// that would be a wildcard or more than one subject token: such a login would get everyone's
// subjects.
func Permissions(id Identity) (jwt.Permissions, error) {
	var may jwt.Permissions
	may.Sub.Allow = jwt.StringList{id.InboxPrefix() + ".>"}
	switch id.Role {
	case Principal:
		if len(id.Name) > maxToken || !token.MatchString(id.Name) {
			return jwt.Permissions{}, fmt.Errorf("login: %q is not the token of a principal", id.Name)
		}
		may.Pub.Allow = jwt.StringList{
			"asp.agent." + id.Name + ".submit.*",
			"asp.agent." + id.Name + ".api.*.*",
			"$JS.API.CONSUMER.INFO.ASP_INBOX." + id.Name,
			"$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX." + id.Name,
			// Stream and consumer are named: with a wildcard for them, "+NXT" would read
			// another's inbox.
			"$JS.ACK.ASP_INBOX." + id.Name + ".>",
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
		may.Pub.Allow = jwt.StringList{"asp.operator.api.*.*", "$SRV.>"}
		may.Sub.Allow = append(may.Sub.Allow, "asp.event.>", "asp.escalation.>")
	case Broker:
		if id.Name != BrokerName {
			return jwt.Permissions{}, fmt.Errorf("login: the broker is named %q, not %q", BrokerName, id.Name)
		}
		return jwt.Permissions{}, nil // everything, in an account of its own
	default:
		return jwt.Permissions{}, fmt.Errorf("login: no role %q", id.Role)
	}
	return may, nil
}
