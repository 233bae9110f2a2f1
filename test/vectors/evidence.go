package vectors

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	evidences "github.com/parley-asp/parley/session/evidence"
)

// Evidence is a bundle as session.evidence answers it.
type Evidence struct {
	Name        string            `json:"name"`
	About       string            `json:"about"`
	Broker      performatives.Key `json:"broker"`      // whose receipts are expected
	LogKey      string            `json:"logKey"`      // of the public log, as a signed note has it
	ReceiptsKey string            `json:"receiptsKey"` // of COSE Receipts, as PEM
	Bundle      jsontext.Value    `json:"bundle"`
	Logged      int               `json:"logged"`            // leaves of it that are in the log
	Withheld    int               `json:"withheld"`          // entries of which hash and receipt are left
	Unproven    []string          `json:"unproven,omitzero"` // the single changes that are accepted, as Changes names them; absent where nobody has tried all
	Refused     []string          `json:"refused,omitzero"`  // JSON Pointers to what is wrong, one of which every reader finds; none is accepted
}

// evidence has bundles of what became of deals, and how Go's verifier judges their changes.
func evidence(buying *table) (all []Evidence, err error) {
	tables := map[string]*table{"sealed": buying}
	for i, deal := range []struct {
		name string
		make func(int) (*table, error)
	}{{"delivered", delivered}, {"converged", converged}, {"bound", bound}, {"confirmed", confirmed}} {
		if tables[deal.name], err = deal.make(i + 3); err != nil {
			return nil, fmt.Errorf("%s: %w", deal.name, err)
		}
	}
	log, err := newLog(tables["delivered"], tables["converged"], tables["bound"], tables["confirmed"], buying)
	if err != nil {
		return nil, err
	}
	key, err := inclusion.NewReceiptKey(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		return nil, err
	}
	add := func(name, about string, b evidences.Bundle, refused ...string) *Evidence {
		data, marshalErr := json.Marshal(b, json.Deterministic(true))
		err = cmp.Or(err, marshalErr)
		all = append(all, Evidence{
			Name: name, About: about, Broker: buying.broker.Key(), LogKey: log.key, ReceiptsKey: key.PEM(), Bundle: data, Logged: 2, Refused: refused,
		})
		return &all[len(all)-1]
	}
	bundle := func(name string) (b evidences.Bundle) {
		if err == nil {
			b, err = log.bundle(tables[name], key)
		}
		return b
	}
	whole := bundle("delivered")
	add("delivered", "of asp/1: half of it in time, a breach, a dispute that an arbiter decides", whole).Unproven = []string{}
	add("converged", "of convergent/1, by three: deemed, amended, waived, released; a dispute ends by an offer", bundle("converged"))
	add("bound", "of binding/1, not over: a breach, and a dispute that the transcript decides", bundle("bound")).Logged = 1
	add("confirmed", "of bilateral/1, confirmed by people; a dispute is conceded", bundle("confirmed"))
	sealed := bundle("sealed")
	opens := add("sealed", "nothing is carried out; parts are sealed, and the bundle opens them", sealed)
	for id, parts := range sealed.Sealed {
		opens.Unproven = append(opens.Unproven, "gone /sealed/"+string(id))
		for member := range parts {
			opens.Unproven = append(opens.Unproven, "gone /sealed/"+string(id)+"/"+member)
		}
	}
	slices.Sort(opens.Unproven)
	opens.Unproven = append([]string{"gone /sealed"}, opens.Unproven...)
	if err != nil {
		return nil, err
	}
	redacted, err := whole.Redact("obligations", "price")
	if err != nil {
		return nil, err
	}
	partly := add("redacted", "who owes what and the price were taken out: what is said of disputes cannot be computed again", redacted)
	partly.Withheld, partly.Unproven = 2, []string{"gone /disputes/0"}
	for i := range redacted.Disputes[0].Entries {
		partly.Unproven = append(partly.Unproven, fmt.Sprintf("gone /disputes/0/entries/%d", i), fmt.Sprintf("other /disputes/0/entries/%d", i))
	}
	for _, member := range []string{"by", "disputeId", "ground", "status"} {
		partly.Unproven = append(partly.Unproven, "other /disputes/0/"+member)
	}
	other := whole
	other.Agreements = sealed.Agreements
	other.Receipts = &evidences.Receipts{Key: key.PEM(), Agreements: sealed.Receipts.Agreements, Session: whole.Receipts.Session}
	add("other-agreement", "a genuine agreement of another session, with its receipt", other, "/agreements/0")
	swapped := whole
	swapped.Receipts = &evidences.Receipts{Key: key.PEM(), Agreements: map[agreement.ID][]byte{whole.Agreements[0].ID: whole.Receipts.Session}, Session: whole.Receipts.Session}
	add("other-receipt", "the agreement has the receipt of the session's end", swapped, "/receipts/agreements/"+string(whole.Agreements[0].ID))
	turned, rotatedErr := rotatedEvidence(8)
	err = cmp.Or(err, rotatedErr)
	if err != nil {
		return nil, err
	}
	add("rotated", "the broker's key was replaced during the deal; the bundle has the history", turned).Logged = 0
	forged := turned
	forged.BrokerKeys = slices.Clone(turned.BrokerKeys)
	forged.BrokerKeys[1].Proof = turned.BrokerKeys[1].Signature
	add("rotated-forged", "the new key has not signed that it follows", forged, "/brokerKeys").Logged = 0
	turned.BrokerKeys = nil
	add("rotated-bare", "the history is not there", turned, "/transcript/3").Logged = 0
	return all, err
}

// bundle is of a transcript, with what the log has of it.
func (l *publicLogOf) bundle(t *table, key inclusion.ReceiptKey) (evidences.Bundle, error) {
	lines := make([]jsontext.Value, len(t.entries))
	for i, e := range t.entries {
		lines[i] = e.Bytes
	}
	sealed := t.sealed
	if len(sealed) == 0 {
		sealed = nil
	}
	b, err := evidences.Make(lines, sealed)
	if err != nil {
		return b, err
	}
	return b, b.Logged(key.PEM(), func(kind inclusion.Kind, id string) (*inclusion.Proof, []byte, error) {
		hash := string(b.Head)
		if kind == inclusion.Agreement {
			hash = string(b.Agreements[slices.IndexFunc(b.Agreements, func(d agreement.Document) bool { return string(d.ID) == id })].Hash)
		} else if !t.state.Phase.Over() {
			return nil, nil, nil
		}
		p := l.proofs[hash]
		receipt, err := l.receipt(p.Index, key)
		return &p, receipt, err
	})
}

// receipt is the COSE Receipt of a leaf.
func (l *publicLogOf) receipt(index int64, key inclusion.ReceiptKey) ([]byte, error) {
	size := int64(len(l.leaves))
	root, err := tlog.TreeHash(size, l)
	if err != nil {
		return nil, err
	}
	signed, err := key.Sign(inclusion.Checkpoint{Origin: logOrigin, Tree: tlog.Tree{N: size, Hash: root}})
	if err != nil {
		return nil, err
	}
	path, err := tlog.ProveRecord(size, index, l)
	if err != nil {
		return nil, err
	}
	return signed.Receipt(size, index, path)
}

// Changes makes each single change of a bundle in turn, and tells its name: "gone" and a JSON Pointer for a value
// that is not there, "other" for a text whose last character is A, or B if it was A, and for a number that is one more.
// Entries are gone as a whole; only the last of the transcript is changed in itself.
func Changes(bundle map[string]any, changed func(name string)) {
	entries, _ := bundle["transcript"].([]any)
	last := "/transcript/" + strconv.Itoa(len(entries)-1)
	var each func(at string, value any, put func(any))
	one := func(at string, value any, put func(any), remove func()) {
		remove()
		changed("gone " + at)
		switch v := value.(type) {
		case string:
			put(otherText(v))
			changed("other " + at)
		case float64:
			put(v + 1)
			changed("other " + at)
		}
		put(value)
		entry, _ := value.(map[string]any)
		if _, is := entry["integrity"]; !is || at == last {
			each(at, value, put)
		}
	}
	each = func(at string, value any, put func(any)) {
		switch all := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(all)) {
				step := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
				one(at+"/"+step, all[name], func(v any) { all[name] = v }, func() { delete(all, name) })
			}
		case []any:
			for i := range all {
				one(at+"/"+strconv.Itoa(i), all[i], func(v any) {
					all[i] = v
					put(all)
				}, func() { put(slices.Concat(all[:i], all[i+1:])) })
			}
		}
	}
	each("", bundle, func(any) {})
}

// otherText has another last character.
func otherText(s string) string {
	if s == "" {
		return "A"
	}
	if rest, is := strings.CutSuffix(s, "A"); is {
		return rest + "B"
	}
	runes := []rune(s)
	return string(runes[:len(runes)-1]) + "A"
}
