package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/test/testkit"
)

// browse stands in for a browser: it signs in with the code of the URL that it is given, writes the page that
// comes next to a file, and presses Ctrl-C.
func browse() {
	at, err := url.Parse(os.Args[1])
	check(err)
	root := at.Scheme + "://" + at.Host
	_, code, _ := strings.Cut(at.Fragment, "code=")
	jar, err := cookiejar.New(nil)
	check(err)
	client := &http.Client{Jar: jar}
	send := func(method, path string, body any) []byte {
		data, err := json.Marshal(body)
		check(err)
		r, err := http.NewRequest(method, root+"/inbox/"+path, bytes.NewReader(data)) //nolint:noctx // a program of its own
		check(err)
		for name, value := range map[string]string{"Content-Type": "application/json", "Parley-Inbox": "1", "Sec-Fetch-Site": "same-origin", "Origin": root} {
			r.Header.Set(name, value)
		}
		answer, err := client.Do(r)
		check(err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		check(err)
		if answer.StatusCode != http.StatusOK {
			check(fmt.Errorf("%s: %d %s", path, answer.StatusCode, text))
		}
		return text
	}
	public, key, err := ed25519.GenerateKey(nil)
	check(err)
	var c struct {
		Challenge string `json:"challenge"`
	}
	check(json.Unmarshal(send(http.MethodPost, "challenge", struct{}{}), &c))
	signed := `{"challenge":"` + c.Challenge + `","origin":"` + root + `","purpose":"parley inbox sign-in"}`
	send(http.MethodPost, "enrol", map[string]any{
		"code": code, "name": "demo", "challenge": c.Challenge, "key": hex.EncodeToString(public), "signature": "ed25519:" + hex.EncodeToString(ed25519.Sign(key, []byte(signed))),
	})
	check(os.WriteFile("page.html", send(http.MethodGet, at.Query().Get("next"), nil), 0o600))
	parent, err := os.FindProcess(os.Getppid())
	check(err)
	check(parent.Signal(syscall.SIGINT))
}

// $BROWSER is a list of commands; %s in one is the URL, which else comes last.
func TestBrowserFor(t *testing.T) {
	for variable, want := range map[string][]string{
		"firefox": {"firefox", "U"}, "firefox --new-tab": {"firefox", "--new-tab", "U"}, "w3m -o x %s:lynx": {"w3m", "-o", "x", "U"}, "open --url=%s": {"open", "--url=U"},
	} {
		t.Setenv("BROWSER", variable)
		if got := browserFor("U"); !slices.Equal(got, want) {
			t.Errorf("%q runs %q, want %q", variable, got, want)
		}
	}
	t.Setenv("BROWSER", "")
	if got := browserFor("U"); len(got) < 2 || got[len(got)-1] != "U" {
		t.Errorf("the system's browser is run as %q", got)
	}
}

// said ends a context once something is said.
type said struct {
	strings.Builder
	until string
	end   context.CancelFunc
}

func (s *said) Write(data []byte) (int, error) {
	n, err := s.Builder.Write(data)
	if strings.Contains(s.String(), s.until) {
		s.end()
	}
	return n, err
}

// Without a browser the URL is printed, and that none was opened.
func TestNoBrowser(t *testing.T) {
	t.Setenv("BROWSER", "no-such-browser")
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	out := &said{until: "open the link yourself", end: cancel}
	testkit.Must(t, openPage(ctx, out, "http://127.0.0.1:1/inbox/"))
	if !strings.Contains(out.String(), "The last deal: http://127.0.0.1:1/inbox/") || !strings.Contains(out.String(), "No browser was opened (no-such-browser: ") {
		t.Errorf("it says %q", out)
	}
}
