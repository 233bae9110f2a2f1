// Package webhook makes the calls of Standard Webhooks.
//
//	secret, err := webhook.Secret("whsec_…")
//	to, err := webhook.Call{ID: id, At: time.Now(), Body: body}.Post(ctx, client, url, secret)
//	if errors.Is(err, webhook.ErrGone) { … } // the receiver wants no more
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Errors of Post.
var (
	ErrGone     = errors.New("the receiver wants no more") // calls
	ErrAnswered = errors.New("the receiver answered")      // with a status that is not 2xx
)

const prefix = "whsec_"

// Secret reads a secret: whsec_ and the base64 of 24 to 64 bytes.
func Secret(text string) ([]byte, error) {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, prefix))
	if err != nil || len(secret) < 24 || len(secret) > 64 {
		return nil, errors.New("want whsec_ and the base64 of 24 to 64 random bytes")
	}
	return secret, nil
}

// IsSecret reports whether a text is meant as a secret.
func IsSecret(text string) bool { return strings.HasPrefix(text, prefix) }

// Text is a secret as Secret reads it.
func Text(secret []byte) string { return prefix + base64.StdEncoding.EncodeToString(secret) }

// A Call is one event. Its ID is the same on every attempt.
type Call struct {
	ID   string
	At   time.Time // of the attempt
	Body []byte    // JSON

	Token string // that the receiver asks for; "": none
}

// Header is what a receiver checks a call by. The signature is the HMAC-SHA256 of id, time and body
// with the secret: it shows the sender and the age.
func (c Call) Header(secret []byte) http.Header {
	stamp := strconv.FormatInt(c.At.Unix(), 10)
	return http.Header{"Webhook-Id": {c.ID}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {c.sign(stamp, secret)}}
}

// Post makes a call, and returns the host that answered it.
func (c Call) Post(ctx context.Context, client *http.Client, url string, secret []byte) (host string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(c.Body))
	if err != nil {
		return "", err
	}
	r.Header = c.Header(secret)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "parley")
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()                              //nolint:errcheck // only the status matters
	io.Copy(io.Discard, io.LimitReader(answer.Body, 4096)) //nolint:errcheck // for reuse of the connection
	switch {
	case answer.StatusCode/100 == 2:
		return r.URL.Host, nil
	case answer.StatusCode == http.StatusGone:
		return "", fmt.Errorf("%w: %w %s", ErrGone, ErrAnswered, answer.Status)
	default:
		return "", fmt.Errorf("%w %s", ErrAnswered, answer.Status)
	}
}

// Signed reports whether a call was signed with the secret, at a time as its header has it.
func (c Call) Signed(stamp, signature string, secret []byte) bool {
	return hmac.Equal([]byte(signature), []byte(c.sign(stamp, secret)))
}

func (c Call) sign(stamp string, secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(c.ID + "." + stamp + "."))
	mac.Write(c.Body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
