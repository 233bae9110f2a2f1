package login

import (
	"errors"
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"
)

const (
	requestSubject  = "$SYS.REQ.USER.AUTH"
	requestAudience = "nats-authorization-request"
	queue           = "asp-login" // several brokers share the logins
)

// Lookup finds the identity that a public nkey ("U…") is registered for. It is called for one
// login at a time and should answer from memory: the server gives a login a few seconds.
type Lookup func(publicKey string) (Identity, bool)

// Serve answers the server's logins until stop is called. The connection nc is that of the
// callout user in CalloutAccount; issuer is the account key ("A…") whose public half the
// server was configured with, and whoever holds it can let anybody in. When Serve returns, the
// server knows of it. Without it nobody new gets in, and who is connected stays.
func Serve(nc *nats.Conn, issuer nkeys.KeyPair, lookup Lookup, log *zap.Logger) (stop func(), err error) {
	issuerKey, err := issuer.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("login: issuer: %w", err)
	}
	if !nkeys.IsValidPublicAccountKey(issuerKey) {
		return nil, errors.New("login: the issuer must be an account key")
	}
	c := callout{issuer: issuer, issuerKey: issuerKey, lookup: lookup, log: log}
	sub, err := nc.QueueSubscribe(requestSubject, queue, c.answer)
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
	}, nil
}

type callout struct {
	issuer    nkeys.KeyPair
	issuerKey string
	lookup    Lookup
	log       *zap.Logger
}

// answer replies to one login. A request that is not the server's gets no reply at all.
func (c callout) answer(msg *nats.Msg) {
	req, err := c.read(msg.Data)
	if err != nil {
		c.log.Warn("login request not understood", zap.Error(err))
		return
	}
	res := jwt.NewAuthorizationResponseClaims(req.UserNkey)
	res.Audience = req.Server.ID

	// Only the public key and the address are logged: the options hold passwords and tokens.
	who := []zap.Field{zap.String("key", req.ConnectOptions.Nkey), zap.String("host", req.ClientInformation.Host)}
	id, user, err := c.admit(req)
	if err != nil {
		c.log.Info("login refused", append(who, zap.Error(err))...)
		res.Error = err.Error()
	} else {
		c.log.Debug("login", append(who, zap.String("name", id.Name), zap.String("role", string(id.Role)))...)
		res.Jwt = user
	}
	signed, err := res.Encode(c.issuer)
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
	case req.Subject != c.issuerKey:
		return nil, errors.New("meant for another issuer")
	case req.Issuer != req.Server.ID:
		return nil, errors.New("not signed by the server that it names")
	}
	return req, nil
}

// admit decides, and signs the user that the connection becomes.
func (c callout) admit(req *jwt.AuthorizationRequestClaims) (Identity, string, error) {
	offered := req.ConnectOptions
	if err := VerifyNonce(offered.Nkey, offered.SignedNonce, []byte(req.ClientInformation.Nonce)); err != nil {
		return Identity{}, "", err
	}
	id, found := c.lookup(offered.Nkey)
	if !found {
		return Identity{}, "", errors.New("key is not registered")
	}
	may, err := Permissions(id)
	if err != nil {
		return Identity{}, "", err
	}
	user := jwt.NewUserClaims(req.UserNkey)
	user.Name = id.User(offered.Nkey) // found again by this when the key is taken away
	user.Audience = id.Account()
	user.Permissions = may
	signed, err := user.Encode(c.issuer)
	if err != nil {
		return Identity{}, "", fmt.Errorf("user not signed: %w", err)
	}
	return id, signed, nil
}
