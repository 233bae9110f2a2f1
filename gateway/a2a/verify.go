package a2agateway

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/internal/publicnet"
	"github.com/parley-asp/parley/performatives"
)

// A server is where an agent elsewhere is reached.
type server struct{ client *a2aclient.Client }

// A remote is an agent elsewhere as an operator named it. Whoever answers there names further
// URLs, which are read only if they are of the same origin.
type remote struct {
	client   *http.Client
	agent    performatives.Agent
	url      string
	unsigned bool // its card may be
}

// Errors of an agent's card.
var (
	ErrDomain    = errors.New("the agent's card names a server of another domain than the agent's URI")
	ErrOrigin    = errors.New("the agent's card names another scheme, host or port than the agent's URL")
	ErrUnsigned  = errors.New("the agent's card is not signed")
	ErrSignature = errors.New("no signature of the agent's card is valid")
)

// CheckRemote reads an agent's card at a URL and checks its domain and its signature. It is for
// operators, who may name private addresses: whether a broker reaches them is up to the broker.
func CheckRemote(ctx context.Context, agent performatives.Agent, url string, unsigned bool) error {
	_, err := remote{remoteClient(true), agent, url, unsigned}.connect(ctx)
	return err
}

// remoteClient reaches servers elsewhere. What they answer is bounded, and they redirect to
// nowhere.
func remoteClient(private bool) *http.Client {
	client := publicnet.Client(AnswerWithin, private)
	client.Transport = boundedReplies{client.Transport}
	return client
}

// connect reads an agent's card, checks it, and makes a client for its server.
func (r remote) connect(ctx context.Context) (*server, error) {
	ctx, cancel := context.WithTimeout(ctx, AnswerWithin)
	defer cancel()
	if err := r.sameDomain(); err != nil {
		return nil, err
	}
	data, err := r.fetch(ctx, strings.TrimSuffix(r.url, "/")+"/"+CardPath)
	if err != nil {
		return nil, err
	}
	card, err := a2av0.NewAgentCardParser()(data)
	if err != nil {
		return nil, fmt.Errorf("the agent's card: %w", err)
	}
	card.SupportedInterfaces = slices.DeleteFunc(card.SupportedInterfaces, func(at *a2a.AgentInterface) bool { return at == nil })
	for _, at := range card.SupportedInterfaces {
		if err := r.sameOrigin(at.URL); err != nil {
			return nil, err
		}
	}
	if len(card.Signatures) > 0 || !r.unsigned {
		if err := r.verifyCard(ctx, card.Signatures, data); err != nil {
			return nil, err
		}
	}
	made, err := a2aclient.NewFromCard(ctx, card, a2aclient.WithJSONRPCTransport(r.client), a2aclient.WithRESTTransport(r.client),
		a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{Client: r.client}))
	if err != nil {
		return nil, err
	}
	return &server{made}, nil
}

// sameDomain refuses an agent whose URL is not at the host of its organisation, or below it.
func (r remote) sameDomain() error {
	u, err := url.Parse(r.url)
	domain := string(r.agent.Organisation())
	if err != nil || u.Hostname() != domain && !strings.HasSuffix(u.Hostname(), "."+domain) {
		return fmt.Errorf("%w: %.200q is not at %s", ErrDomain, r.url, domain)
	}
	return nil
}

// sameOrigin refuses a URL of another origin than the agent's.
func (r remote) sameOrigin(text string) error {
	own, err := origin(r.url)
	if err != nil {
		return err
	}
	if named, err := origin(text); err != nil || named != own {
		return fmt.Errorf("%w: %.200q is not at %s", ErrOrigin, text, own)
	}
	return nil
}

func origin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port), nil
}

func (r remote) fetch(ctx context.Context, url string) ([]byte, error) {
	return publicnet.Get(ctx, r.client, url, jsonType, maxReply)
}

// boundedReplies cuts off replies that are too large.
type boundedReplies struct{ inner http.RoundTripper }

func (b boundedReplies) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.inner.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxReply)
	}
	return answer, err
}

// signedMembers are the members of a card of A2A 1.0 that a signature covers. Others, such as
// those of 0.3, are not.
var signedMembers = []string{
	"name", "description", "supportedInterfaces", "provider", "version", "documentationUrl", "capabilities", "securitySchemes",
	"securityRequirements", "defaultInputModes", "defaultOutputModes", "skills", "iconUrl",
}

// verifyCard checks that one of a card's signatures is valid, by a key that the agent's domain
// publishes.
func (r remote) verifyCard(ctx context.Context, signatures []a2a.AgentCardSignature, data []byte) error {
	if len(signatures) == 0 {
		return ErrUnsigned
	}
	var whole object
	if err := json.Unmarshal(data, &whole); err != nil {
		return err
	}
	card := object{}
	for _, name := range signedMembers {
		card[name] = whole[name]
	}
	marshalled, err := json.Marshal(filled(card), json.Deterministic(true))
	if err != nil {
		return err
	}
	payload, err := performatives.Canonical(marshalled)
	if err != nil {
		return err
	}
	for _, s := range signatures[:min(len(signatures), 8)] {
		if r.verifyOne(ctx, s, payload) == nil {
			return nil
		}
	}
	return ErrSignature
}

func (r remote) verifyOne(ctx context.Context, s a2a.AgentCardSignature, payload []byte) error {
	var header struct {
		Alg string `json:"alg"`
		Kid string `json:"kid"`
		Jku string `json:"jku"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(s.Protected)
	if err == nil {
		err = json.Unmarshal(raw, &header)
	}
	if err == nil {
		err = r.sameOrigin(header.Jku)
	}
	if err != nil {
		return err
	}
	data, err := r.fetch(ctx, header.Jku)
	if err != nil {
		return err
	}
	var published struct {
		Keys []struct {
			Kid string `json:"kid"`
			Kty string `json:"kty"`
			Crv string `json:"crv"`
			X   string `json:"x"`
			Y   string `json:"y"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(data, &published); err != nil {
		return err
	}
	signature, err := base64.RawURLEncoding.DecodeString(s.Signature)
	if err != nil {
		return err
	}
	signed := []byte(s.Protected + "." + base64.RawURLEncoding.EncodeToString(payload))
	for _, k := range published.Keys {
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if k.Kid != header.Kid || err != nil {
			continue
		}
		switch {
		case header.Alg == "EdDSA" && k.Crv == "Ed25519" && len(x) == ed25519.PublicKeySize:
			if ed25519.Verify(x, signed, signature) {
				return nil
			}
		case header.Alg == "ES256" && k.Crv == "P-256" && len(signature) == 64:
			y, err := base64.RawURLEncoding.DecodeString(k.Y)
			if err != nil {
				continue
			}
			key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y))
			hash := sha256.Sum256(signed)
			if err == nil && ecdsa.Verify(key, hash[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
				return nil
			}
		}
	}
	return ErrSignature
}
