package embedded

import (
	"errors"
	"fmt"
	"net"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/server/login"
)

// ErrNotLoopback is returned for a server without logins that others could reach.
var ErrNotLoopback = errors.New("a server without login listens on a loopback address only")

func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

const devName = "dev"

// devUser may call everything that its account imports, as anyone. It may subscribe to
// everything, so that clients can choose their reply inboxes: the account has only imports and
// the replies to other clients, and all clients are the same user.
func devUser(principals *server.Account, shards int) *server.User {
	return &server.User{
		Username: devName,
		Account:  principals,
		Permissions: &server.Permissions{
			Publish:  &server.SubjectPermission{Allow: subjects(devServices(shards))},
			Response: &server.ResponsePermission{MaxMsgs: 1, Expires: login.Answering},
		},
	}
}

// addDevelopment configures a server without logins.
func (o Options) addDevelopment(opts *server.Options) error {
	if !nkeys.IsValidPublicUserKey(o.Broker) {
		return errors.New("the broker's key is not a user nkey")
	}
	accounts, err := newAccounts(o.Authority, development(o.Shards))
	if err != nil {
		return fmt.Errorf("accounts: %w", err)
	}
	opts.Accounts = accounts.all()
	opts.Nkeys = []*server.NkeyUser{{Nkey: o.Broker, Account: accounts[login.BrokerAccount]}}
	// Makes the server announce that it needs no credentials.
	opts.Users = []*server.User{devUser(accounts[login.PrincipalsAccount], o.Shards)}
	opts.NoAuthUser = devName
	opts.AlwaysEnableNonce = true
	return nil
}

// devLogin logs in every client as the dev user, whatever credentials it presents. Only the
// broker must prove its key. The server's own no_auth_user would refuse clients that present
// credentials.
type devLogin struct {
	broker    string
	asp, user *server.User
}

// resolve looks up the accounts on the server, which copies those in its options.
func (d *devLogin) resolve(ns *server.Server, authority *login.Authority, shards int) error {
	asp, err := ns.LookupAccount(authority.Account(login.BrokerAccount))
	if err != nil {
		return err
	}
	principals, err := ns.LookupAccount(authority.Account(login.PrincipalsAccount))
	if err != nil {
		return err
	}
	d.asp, d.user = &server.User{Account: asp}, devUser(principals, shards)
	return nil
}

// Check implements server.Authentication.
func (d *devLogin) Check(c server.ClientAuthentication) bool {
	offered := c.GetOpts()
	if offered.Nkey != d.broker {
		c.RegisterUser(d.user)
		return true
	}
	if login.VerifyNonce(offered.Nkey, offered.Sig, c.GetNonce()) != nil {
		return false
	}
	c.RegisterUser(d.asp)
	return true
}
