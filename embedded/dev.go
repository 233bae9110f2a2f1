package embedded

import (
	"errors"
	"fmt"
	"net"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/login"
)

// ErrNotLoopback is why a server without login does not start: others could reach it.
var ErrNotLoopback = errors.New("a server without login listens on a loopback address only")

func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

const devName = "dev"

// devUser may call everything that its account imports, as anyone. It may subscribe to
// anything, so that clients can choose their reply inboxes: the account holds nothing but
// imports and the other clients' replies, and all of them are the same user.
func devUser(principals *server.Account) *server.User {
	return &server.User{
		Username: devName,
		Account:  principals,
		Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: subjects(devServices)},
		},
	}
}

// addDevelopment makes the server one without logins.
func (o Options) addDevelopment(opts *server.Options) error {
	if !nkeys.IsValidPublicUserKey(o.Broker) {
		return errors.New("the broker's key is not a user nkey")
	}
	accounts, err := newAccounts(o.Authority, development)
	if err != nil {
		return fmt.Errorf("accounts: %w", err)
	}
	opts.Accounts = accounts.all()
	opts.Nkeys = []*server.NkeyUser{{Nkey: o.Broker, Account: accounts[login.BrokerAccount]}}
	// Makes the server announce that it asks for no credentials.
	opts.Users = []*server.User{devUser(accounts[login.PrincipalsAccount])}
	opts.NoAuthUser = devName
	opts.AlwaysEnableNonce = true
	return nil
}

// devLogin takes every client for the dev user, with whatever credentials it comes, but for
// the broker, which proves its key as everywhere. The server's own no_auth_user would turn
// away a client that brings credentials although none are asked for.
type devLogin struct {
	broker    string
	asp, user *server.User
}

// resolve takes the accounts from the server, which works on copies of those in its options.
func (d *devLogin) resolve(ns *server.Server, authority *login.Authority) error {
	asp, err := ns.LookupAccount(authority.Account(login.BrokerAccount))
	if err != nil {
		return err
	}
	principals, err := ns.LookupAccount(authority.Account(login.PrincipalsAccount))
	if err != nil {
		return err
	}
	d.asp, d.user = &server.User{Account: asp}, devUser(principals)
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
