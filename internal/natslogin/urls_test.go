package natslogin_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/parley-asp/parley/internal/natslogin"
)

// No user and no password is left, also of a URL that its parser refuses.
func TestRedact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, want string }{
		{"nats://u:secretpw@h:1", "nats://xxxxx@h:1"},
		{"u:secretpw@h:1", "xxxxx@h:1"},
		{"secretpw@h", "xxxxx@h"},
		{"nats://u:p@secretpw@h", "nats://xxxxx@h"},
		{"nats://u:secretpw/secretpw?#@h:1", "nats://xxxxx@h:1"},
		{"nats://h1:1,nats://u:secretpw@h2", "nats://h1:1,nats://xxxxx@h2"},
		{"u:secretpw@h1,nats://u:secretpw@h2", "xxxxx@h1,nats://xxxxx@h2"},
		{"nats://u:secretpw%zzsecretpw@h", "nats://xxxxx@h"},
		{"https://u:secretpw@h/a@b", "https://xxxxx@h/a@b"},
		{"nats://h:1", "nats://h:1"},
	} {
		if got := natslogin.WithoutPassword(c.url); got != c.want {
			t.Errorf("%s is %s, not %s", c.url, got, c.want)
		}
		text := "no connection to " + c.url + ". Is " + c.url + " there?"
		if _, err := url.Parse(c.url); err != nil {
			text += err.Error()
		}
		if got := natslogin.Redact(text, c.url); strings.Contains(got, "secretpw") || !strings.HasPrefix(got, "no connection to "+c.want+". Is "+c.want+" there?") {
			t.Errorf("%s is told as %s", text, got)
		}
	}
}
