package login

import (
	"errors"
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

const (
	requestSubject  = "$SYS.REQ.USER.AUTH"
	requestAudience = "nats-authorization-request"
	queue           = "asp-login" // several brokers share the logins
)

// Lookup finds the identity of a registered public nkey ("U…"). It may be called concurrently
// and should answer from memory, since the server gives a login a few seconds.
type Lookup func(publicKey string) (Identity, bool)

// Admit refuses the login of an identity that may not connect now, such as one with too many
// connections. It is asked after the key has been verified; nil admits everybody.
type Admit func(id Identity, publicKey string) error

// Serve answers the server's logins until stop is called. nc is the connection of the callout
// user in CalloutAccount. issuer is an account key ("A…"): a server in config mode has its public
// key, and the keys of one in operator mode are derived from it ([Authority]). The request says
// which mode the server is in. When Serve returns, the server knows the service. Without the
// service nobody can log in, and open connections stay.
func Serve(nc *nats.Conn, issuer nkeys.KeyPair, lookup Lookup, admit Admit, log *zap.Logger) (stop func(), err error) {
	authority, err := NewAuthority(issuer)
	if err != nil {
		return nil, err
	}
	c := callout{authority: authority, lookup: lookup, mayConnect: admit, log: log}
	if c.configured, err = issuer.PublicKey(); err != nil {
		return nil, fmt.Errorf("login: issuer: %w", err)
	}
	// A lookup may have to ask a server, so logins do not wait for each other. Above the limit they
	// wait in the connection.
	var answering errgroup.Group
	answering.SetLimit(atOnce)
	sub, err := nc.QueueSubscribe(requestSubject, queue, func(m *nats.Msg) {
		answering.Go(func() error { c.answer(m); return nil })
	})
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	if err := nc.Flush(); err != nil {
		return nil, errors.Join(fmt.Errorf("login: %w", err), sub.Unsubscribe())
	}
	return func() {
		if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			log.Warn("login service did not stop cleanly", zap.Error(err))
		}
		answering.Wait() //nolint:errcheck // answer reports its own errors
	}, nil
}

// atOnce is the most logins that are looked up concurrently.
const atOnce = 64

type callout struct {
	authority  *Authority
	configured string // the issuer's public key, for servers in config mode
	lookup     Lookup
	mayConnect Admit
	log        *zap.Logger
}

// answer replies to one login. A request that does not come from a server gets no reply.
func (c callout) answer(msg *nats.Msg) {
	req, err := c.read(msg.Data)
	if err != nil {
		c.log.Warn("login request not understood", zap.Error(err))
		return
	}
	res := jwt.NewAuthorizationResponseClaims(req.UserNkey)
	res.Audience = req.Server.ID
	if c.inOperatorMode(req) {
		res.IssuerAccount = req.Subject
	}

	// Only the public key and the address are logged, since the options have passwords and tokens.
	key, _ := keyOf(req.ConnectOptions) // admit returns the error
	who := []zap.Field{zap.String("key", key), zap.String("host", req.ClientInformation.Host)}
	id, user, err := c.admit(req)
	if err != nil {
		c.log.Info("login refused", append(who, zap.Error(err))...)
		res.Error = err.Error()
	} else {
		c.log.Debug("login", append(who, zap.String("name", id.Name), zap.String("role", string(id.Role)))...)
		res.Jwt = user
	}
	signed, err := res.Encode(c.authority.issuer)
	if err != nil {
		c.log.Error("login answer not signed", zap.Error(err))
		return
	}
	if err := msg.Respond([]byte(signed)); err != nil {
		c.log.Error("login not answered", zap.Error(err))
	}
}

// read decodes a request, which checks that its issuer, a server key, signed it.
func (c callout) read(data []byte) (*jwt.AuthorizationRequestClaims, error) {
	req, err := jwt.DecodeAuthorizationRequestClaims(string(data))
	if err != nil {
		return nil, err
	}
	checked := jwt.CreateValidationResults()
	req.Validate(checked)
	switch {
	case checked.IsBlocking(true):
		return nil, errors.New("invalid or expired")
	case req.Audience != requestAudience:
		return nil, errors.New("not meant as a login request")
	case req.Subject != c.configured && !c.inOperatorMode(req):
		return nil, errors.New("meant for another issuer.nk: configure the NATS server with what 'parley nats-config' prints now")
	case req.Issuer != req.Server.ID:
		return nil, errors.New("not signed by the server that it names")
	}
	return req, nil
}

// inOperatorMode reports whether the asking server is in operator mode: then the request's subject
// is the account.
func (c callout) inOperatorMode(req *jwt.AuthorizationRequestClaims) bool {
	return req.Subject == c.authority.Account(CalloutAccount)
}

// admit decides about a login, and signs the user JWT of the connection.
func (c callout) admit(req *jwt.AuthorizationRequestClaims) (Identity, string, error) {
	offered := req.ConnectOptions
	key, err := keyOf(offered)
	if err != nil {
		return Identity{}, "", err
	}
	if err := VerifyNonce(key, offered.SignedNonce, []byte(req.ClientInformation.Nonce)); err != nil {
		return Identity{}, "", err
	}
	id, found := c.lookup(key)
	if !found {
		return Identity{}, "", errors.New("key is not registered")
	}
	if c.mayConnect != nil {
		if err := c.mayConnect(id, key); err != nil {
			return Identity{}, "", err
		}
	}
	user := jwt.NewUserClaims(req.UserNkey)
	user.Name = id.User(key) // by which the connection is found when the key is removed
	if user.Permissions, err = Permissions(id); err != nil {
		return Identity{}, "", err
	}
	// The connection's account is the audience in config mode, and the issuer account in operator
	// mode.
	if c.inOperatorMode(req) {
		signed, err := c.authority.sign(id.Account(), user)
		return id, signed, err
	}
	user.Audience = id.Account()
	signed, err := user.Encode(c.authority.issuer)
	if err != nil {
		return Identity{}, "", fmt.Errorf("user not signed: %w", err)
	}
	return id, signed, nil
}
