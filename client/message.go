package client

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
)

// A Message is an entry that another participant, or the broker, made, as it
// came to the inbox.
type Message struct {
	transcript.Entry // the message as its sender made it, and the broker's stamp

	trace string // of the first delivery

	inbox *inbox
	came  []delivery // its newest delivery by each feed
	taken *reader    // the loop that has it; nil while it waits
}

// A delivery is a message as a feed brought it; raw is nil while it was only read from the transcript.
type delivery struct {
	by  *feed
	raw jetstream.Msg
}

// arrived notes a delivery.
func (m *Message) arrived(d delivery) {
	for i := range m.came {
		if m.came[i].by == d.by {
			if d.raw != nil {
				m.came[i].raw = d.raw
			}
			return
		}
	}
	m.came = append(m.came, d)
	d.by.held++
}

// Session is the session that it belongs to.
func (m *Message) Session() *Session { return m.inbox.client.Session(m.Message.Session) }

// Act is what was said.
func (m *Message) Act() performatives.Performative { return m.Message.Performative }

// Body is the act's content, one of the types of package performatives such as
// [*performatives.ProposeBody].
func (m *Message) Body() performatives.Body { return m.Message.Body }

// From is who said it; an entry of the broker's own is from a broker://.
func (m *Message) From() performatives.Agent { return m.Message.Sender }

// OnBehalfOf is whom a delegate said it for, "" for anybody else.
func (m *Message) OnBehalfOf() performatives.Agent { return m.Stamp.OnBehalfOf }

// Ref is what an answer's referenceId calls it: a proposalId, commitmentId or
// queryId, or the messageId of a DELEGATE, CLARIFY or ESCALATE; else "".
func (m *Message) Ref() string { return m.Message.Body.ID(m.Message.ID) }

// Terms reads the terms of a PROPOSE or COUNTER into a type of the caller's.
func Terms[T any](m *Message) (terms T, err error) {
	b, ok := m.Body().(performatives.Offering)
	if !ok {
		return terms, fmt.Errorf("client: %s has no terms", m.Act())
	}
	err = json.Unmarshal(b.Offer().Terms, &terms)
	return terms, err
}

// State is the session's state after it.
func (m *Message) State() session.Phase {
	phase, _ := session.ParsePhase(m.Stamp.Receipt.State)
	return phase
}

// Ack tells the inbox that the message is dealt with and need not come again.
// It may be called more than once, and after the loop. The error is
// [ErrGivenBack], or says that the connection is closed.
func (m *Message) Ack() error { return m.inbox.ack(m) }

// ErrGivenBack is for an acknowledgement that comes too late: nobody read the
// inbox any more, so the message was given back to it and comes again.
var ErrGivenBack = errors.New("client: the message was given back to the inbox")

// Verify checks that the entry is as the broker with this key accepted it. The
// broker had checked the sender's signature; to check that too, and that
// nothing is missing, verify the whole [Session.Transcript].
func (m *Message) Verify(broker performatives.Key) error {
	if by := m.Stamp.Receipt.Broker; by != broker {
		return fmt.Errorf("client: the receipt is by %q, not by the broker %s", by, broker)
	}
	return m.VerifyBy(performatives.Trust(broker))
}

// VerifyBy is Verify by all keys of a broker that has rotated its key, as [Calls.BrokerKeys] returns them.
func (m *Message) VerifyBy(keys performatives.TrustedKeys) error {
	if m.Recomputed != m.Stamp.Hash {
		return fmt.Errorf("client: the entry was changed: its hash is %s, not %s as it says", m.Recomputed, m.Stamp.Hash)
	}
	if err := keys.VerifyReceipt(&m.Stamp); err != nil {
		return fmt.Errorf("client: the receipt: %w", err)
	}
	return nil
}

// readEntry reads an entry and its body, opened by parts of the reader's own organisation.
func readEntry(data []byte, sealed jsontext.Value) (transcript.Entry, error) {
	e, err := transcript.Read(data)
	if err == nil && len(sealed) > 0 {
		var parts performatives.SealedParts
		if parts, err = performatives.ReadParts(sealed); err == nil {
			err = e.Message.Open(parts)
		}
	}
	if err != nil {
		return e, err
	}
	return e, e.Message.DecodeBody()
}

// key tells entries apart.
type key struct {
	session  performatives.SessionID
	sequence uint64
}

func (m *Message) key() key { return key{m.Message.Session, m.Stamp.Sequence} }
