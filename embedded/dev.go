package embedded

import (
	"errors"
	"net"

	"github.com/nats-io/nats-server/v2/server"

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

// devLogin takes every client for the dev user, with whatever credentials it comes, but for
// the broker, which proves its key as everywhere. The server's own no_auth_user would turn
// away a client that brings credentials although none are asked for.
type devLogin struct {
	broker    string
	asp, user *server.User
}

// resolve takes the accounts from the server, which works on copies of those in its options.
func (d *devLogin) resolve(ns *server.Server) error {
	asp, err := ns.LookupAccount(login.BrokerAccount)
	if err != nil {
		return err
	}
	principals, err := ns.LookupAccount(login.PrincipalsAccount)
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
