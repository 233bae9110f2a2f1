package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// write makes a file and returns its path.
func write(t *testing.T, path, text string) string {
	t.Helper()
	testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Every way to log in leads in, with another key than the one that signs.
func TestWaysToLogIn(t *testing.T) {
	w := start(t, testkit.Options{})
	seed := w.seed(alpha)
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("SEEDS", dir)
	file := write(t, filepath.Join(dir, "alpha.nk"), "# alpha\r\n"+seed+"\r\n")
	pair := must(nkeys.FromSeed([]byte(seed)))(t)
	login := testkit.LoginOf(t, pair)
	logs := write(t, filepath.Join(dir, "alpha.login.nk"), string(must(login.Seed())(t)))
	alone := write(t, filepath.Join(dir, "alone.nk"), seed)
	write(t, filepath.Join(dir, "nats", "context", "acme.json"), fmt.Sprintf(`{"url": %q, "nkey": "$SEEDS/alpha.login.nk"}`, w.URL))
	write(t, filepath.Join(dir, "nats", "context.txt"), "acme\n")
	signer := must(performatives.NewSigner(pair))(t)

	there := w.URL
	for name, c := range map[string]struct {
		url     string
		options []client.Option
	}{
		"a file, and the one beside it":       {there, []client.Option{client.SeedFile(file)}},
		"two files":                           {there, []client.Option{client.SeedFile(alone), client.LoginFile(logs)}},
		"a seed, and a file":                  {there, []client.Option{client.LoginFile(logs), client.Seed(seed)}},
		"keys":                                {there, testkit.Keys(t, signer)},
		"a context":                           {"", []client.Option{client.Context("acme"), client.Seed(seed)}},
		"the selected context":                {"", []client.Option{client.Context(""), client.SeedFile(alone)}},
		"an address over that of the context": {there + "," + there, []client.Option{client.Context("acme"), client.Seed(seed)}},
	} {
		t.Run(name, func(t *testing.T) {
			a := must(client.Connect(w.Ctx, c.url, alpha, c.options...))(t)
			defer a.Close()
			if a.Key() != signer.Key() {
				t.Errorf("signs with %q", a.Key())
			}
			if a.Agent() != alpha {
				t.Errorf("speaks for %q", a.Agent())
			}
			s := must(a.Invite(w.Ctx, client.Invitation{With: []performatives.Agent{alpha, w.other()}}))(t)
			if m := must(s.Transcript(w.Ctx))(t)[0].Message; m.VerifySignature(signer.Key()) != nil {
				t.Errorf("the signature is %q", m.Signature)
			}
		})
	}
}

// other is a principal that is registered.
func (w world) other() performatives.Agent {
	w.seed(beta)
	return beta
}

// A credentials file logs in, and another key signs. The embedded server takes none,
// so that the login shown here is that under --dev.
func TestCreds(t *testing.T) {
	w := start(t, testkit.Options{Dev: true})
	user := must(nkeys.CreateUser())(t)
	account := must(nkeys.CreateAccount())(t)
	claims := jwt.NewUserClaims(must(user.PublicKey())(t))
	token := must(claims.Encode(account))(t)
	creds := must(jwt.FormatUserConfig(token, must(user.Seed())(t)))(t)
	file := write(t, filepath.Join(t.TempDir(), "alpha.creds"), string(creds))
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	write(t, filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "nats", "context", "acme.json"), fmt.Sprintf(`{"creds": %q}`, file))
	signs := must(performatives.NewSigner(testkit.NewKey(t)))(t)
	for name, option := range map[string]client.Option{"a file": client.Creds(file), "a context": client.Context("acme")} {
		a := must(client.Connect(w.Ctx, w.URL, alpha, option, client.Key(signs)))(t)
		t.Cleanup(func() { a.Close() })
		if a.Key() != signs.Key() {
			t.Errorf("%s: signs with %q", name, a.Key())
		}
		must(a.Register(w.Ctx, api.Card{Name: name}))(t)
		must(a.Invite(w.Ctx, client.Invitation{With: []performatives.Agent{beta}}))(t)
	}
}

// What cannot connect says why, at once or when the context ends.
func TestNoConnection(t *testing.T) {
	w := start(t, testkit.Options{})
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	config := filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "nats", "context")
	write(t, filepath.Join(config, "user.json"), `{"user": "u", "password": "p"}`)
	write(t, filepath.Join(config, "token.json"), `{"token": "t"}`)
	outsider := must(nkeys.CreateUser())(t)
	seed := string(must(outsider.Seed())(t))
	account := string(must(must(nkeys.CreateAccount())(t).Seed())(t))
	ctx, cancel := context.WithTimeout(w.Ctx, 300*time.Millisecond)
	defer cancel()
	for name, c := range map[string]struct {
		agent   performatives.Agent
		url     string
		options []client.Option
		want    string
	}{
		"no principal":                 {"agent://Acme", w.URL, nil, "is no principal"},
		"no key":                       {alpha, w.URL, nil, "no key"},
		"no seed":                      {alpha, w.URL, []client.Option{client.Seed("SUAA")}, "seed"},
		"no user's seed":               {alpha, w.URL, []client.Option{client.Seed(account)}, "want a user nkey"},
		"no file":                      {alpha, w.URL, []client.Option{client.SeedFile("nowhere.nk")}, "nowhere.nk"},
		"no credentials":               {alpha, w.URL, []client.Option{client.Creds("nowhere.creds")}, "nowhere.creds"},
		"no seed in the file":          {alpha, w.URL, []client.Option{client.SeedFile("doc.go")}, "no nkey seed"},
		"no context":                   {alpha, w.URL, []client.Option{client.Context("nowhere")}, "nowhere.json"},
		"a context without a key":      {alpha, w.URL, []client.Option{client.Context("user")}, "no key"},
		"a token without a key":        {alpha, w.URL, []client.Option{client.Context("token")}, "no key"},
		"no timeout":                   {alpha, w.URL, []client.Option{client.Unsigned(), client.Timeout(0)}, "timeout"},
		"no address":                   {alpha, "nats://:x", []client.Option{client.Unsigned()}, "nats://:x"},
		"nobody there":                 {alpha, "nats://127.0.0.1:1", []client.Option{client.Unsigned()}, "deadline"},
		"a key that is not registered": {alpha, w.URL, []client.Option{client.Seed(seed)}, "deadline"},
	} {
		_, err := client.Connect(ctx, c.url, c.agent, c.options...)
		if err == nil || !strings.HasPrefix(err.Error(), "client: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want one about %q", name, err, c.want)
		}
	}
	_, err := client.Connect(ctx, w.URL, alpha, client.Seed(seed))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	if _, err := client.ConnectOperator(ctx, w.URL); err == nil {
		t.Error("an operator without a login connects")
	}
}

// A client may come before its server.
func TestConnectWaitsForTheServer(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	url, seed, login := w.URL, w.seed(alpha), w.login(alpha)
	w.Down()
	connected := make(chan error, 1)
	go func() {
		a, err := client.Connect(w.Ctx, url, alpha, client.Seed(seed), login)
		if err == nil {
			err = a.Close()
		}
		connected <- err
	}()
	w.Up()
	if err := <-connected; err != nil {
		t.Error(err)
	}
}

// A connection that the caller made stays the caller's.
func TestOwnConnection(t *testing.T) {
	w := start(t, testkit.Options{})
	nc := w.Plain(testkit.Login(t, w.Principal(alpha).Key), nats.CustomInboxPrefix("_INBOX."+alpha.Token()))
	a := must(client.Connect(w.Ctx, "", alpha, client.Seed(w.seed(alpha)), client.Conn(nc)))(t)
	s, _ := w.introduced(a, w.Client(beta))
	w.want([]string{w.state(s).String()}, "INTRODUCED")
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if a.Conn() != nc || !nc.IsConnected() {
		t.Error("the caller's connection is closed")
	}
}

// A request that nobody answers ends at its limit, without a deadline of the caller's.
func TestLimit(t *testing.T) {
	t.Parallel()
	s := testkit.StartServer(t) // and no broker
	o, err := client.ConnectOperator(t.Context(), s.URL, client.Unsigned(), client.Limit(50*time.Millisecond))
	testkit.Must(t, err)
	t.Cleanup(func() { o.Close() })
	if _, err := o.Broker(t.Context()); !errors.Is(err, context.DeadlineExceeded) || t.Context().Err() != nil {
		t.Errorf("it ends with %v", err)
	}
	if _, err := client.ConnectOperator(t.Context(), s.URL, client.Unsigned(), client.Limit(0)); err == nil {
		t.Error("no limit at all is taken")
	}
}
