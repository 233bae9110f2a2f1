package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/session/agreement/inclusion"
)

// Witnesses cosign each checkpoint before it is published (C2SP tlog-witness). All brokers
// of an installation have the same.
type Witnesses struct {
	All     []Witness
	Quorum  int           // how many must cosign; 0 is all
	Timeout time.Duration // of one request; 0 is DefaultWitnessTimeout
}

// A Witness is where checkpoints are sent to, and the key of its cosignatures.
type Witness struct {
	Key note.Verifier
	URL string // the submission prefix
}

// DefaultWitnessTimeout lets a leaf be in the log within 10 s although a witness hangs.
const DefaultWitnessTimeout = 5 * time.Second

const (
	// witnessInterval is how long new leaves wait for a checkpoint that is to be cosigned.
	witnessInterval = time.Second

	// A circuit breaker leaves a witness out for firstPause after it failed, twice as long
	// each further time, up to lastPause.
	firstPause = time.Second
	lastPause  = time.Minute

	maxAsks   = 3                // requests for one cosignature: a witness may first say what it has
	maxAnswer = 64 << 10         // bytes
	aheadFor  = 30 * time.Second // in which another broker's leaves arrive; a witness that still has more is another log's, or a restored one's
)

var errCosigned = errors.New("the log's checkpoint waits for witnesses")

// An aheadError is of a witness that has cosigned more leaves than there are.
type aheadError struct{ cosigned, have int64 }

func (e *aheadError) Error() string {
	return fmt.Sprintf("it has cosigned %d leaves, and there are %d", e.cosigned, e.have)
}

// A cosigner is a witness, and what is known of it.
type cosigner struct {
	Witness
	http   http.Client
	log    *zap.Logger
	size   int64 // of the newest checkpoint that it has cosigned, as far as known
	failed int   // times in a row
	until  time.Time
	ahead  time.Time // since when it says that it has cosigned more than there is; zero is not now
	larger int64     // what it said it had cosigned then
}

// Check reports whether the witnesses can be asked, and enough of them cosign.
func (w Witnesses) Check() error {
	if w.Quorum < 0 || w.Quorum > len(w.All) {
		return fmt.Errorf("%d of %d witnesses cannot cosign", w.Quorum, len(w.All))
	}
	if w.Timeout < 0 {
		return errors.New("the time limit of a request is below zero")
	}
	for i, one := range w.All {
		u, err := url.Parse(one.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("the witness %s has no URL: %q", one.Key.Name(), one.URL)
		}
		if slices.ContainsFunc(w.All[:i], func(other Witness) bool {
			return other.Key.Name() == one.Key.Name() && other.Key.KeyHash() == one.Key.KeyHash()
		}) {
			return fmt.Errorf("the witness %s is there twice", one.Key.Name())
		}
	}
	return nil
}

// openWitnesses makes the witnesses ready to be asked.
func (l *Ledger) openWitnesses() error {
	w := &l.o.Witnesses
	if w.Quorum == 0 {
		w.Quorum = len(w.All)
	}
	for _, one := range w.All {
		l.keys = append(l.keys, one.Key)
		l.witnesses = append(l.witnesses, &cosigner{
			Witness: one, log: l.o.Log.With(zap.String("witness", one.Key.Name())),
			http: http.Client{
				Timeout:       cmp.Or(w.Timeout, DefaultWitnessTimeout),
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			},
		})
	}
	return w.Check()
}

// cosigned asks all witnesses for cosignatures, and adds them to the checkpoint if there are enough.
func (l *Ledger) cosigned(ctx context.Context, c inclusion.Checkpoint, signed string, t *tree) (string, error) {
	lines := make([]string, len(l.witnesses))
	var asking sync.WaitGroup
	for i, w := range l.witnesses {
		if time.Now().Before(w.until) {
			continue
		}
		asking.Go(func() {
			line, err := w.cosign(ctx, c, signed, t)
			if lines[i] = line; ctx.Err() == nil {
				w.answered(err)
			}
		})
	}
	asking.Wait()
	have := 0
	for _, line := range lines {
		if line != "" {
			have++
		}
	}
	if have < l.o.Witnesses.Quorum {
		return "", fmt.Errorf("%w: %d of the %d that are needed have cosigned", errCosigned, have, l.o.Witnesses.Quorum)
	}
	return signed + strings.Join(lines, ""), nil
}

// answered opens the circuit breaker after a failure, and closes it after a success.
func (w *cosigner) answered(err error) {
	ahead, is := errors.AsType[*aheadError](err)
	if !is {
		w.ahead = time.Time{}
	} else if w.ahead.IsZero() || ahead.have >= w.larger { // the leaves of the time before have arrived
		w.ahead, w.larger = time.Now(), ahead.cosigned
	}
	switch {
	case is && time.Since(w.ahead) < aheadFor: // by another broker, whose leaves are on their way
	case err != nil:
		if w.failed == 0 {
			w.log.Warn("a witness does not cosign the log's checkpoint", zap.Error(err))
		}
		w.until = time.Now().Add(min(lastPause, firstPause<<min(w.failed, 10)))
		w.failed++
	default:
		if w.failed > 0 {
			w.log.Info("a witness cosigns again")
		}
		w.failed = 0
	}
}

// cosign gets the witness's cosignature, with a proof that the checkpoint extends the one before.
func (w *cosigner) cosign(ctx context.Context, c inclusion.Checkpoint, signed string, t *tree) (line string, err error) {
	for range maxAsks {
		body := "old " + strconv.FormatInt(w.size, 10) + "\n"
		if 0 < w.size && w.size < c.Tree.N {
			proof, err := tlog.ProveTree(c.Tree.N, w.size, t)
			if err != nil {
				return "", err
			}
			for _, hash := range proof {
				body += hash.String() + "\n"
			}
		}
		status, answer, err := w.post(ctx, body+"\n"+signed)
		if err != nil {
			return "", err
		}
		switch status {
		case http.StatusOK:
			lines, err := inclusion.Cosignatures(signed+answer, []note.Verifier{w.Key})
			if err == nil && len(lines) == 0 {
				err = errors.New("its answer has no cosignature by its key")
			}
			if err != nil {
				return "", err
			}
			w.size = c.Tree.N
			return lines[0], nil
		case http.StatusConflict:
			size, err := strconv.ParseInt(strings.TrimSuffix(answer, "\n"), 10, 64)
			switch {
			case err != nil || size < 0:
				return "", fmt.Errorf("it says that it has cosigned %.20q leaves", answer)
			case size > c.Tree.N:
				return "", &aheadError{size, c.Tree.N}
			}
			w.size = size
		default:
			return "", fmt.Errorf("it answers %d %.200q", status, answer)
		}
	}
	return "", errors.New("it says each time that it has cosigned another size")
}

func (w *cosigner) post(ctx context.Context, body string) (status int, answer string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(w.URL, "/")+"/add-checkpoint", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	got, err := w.http.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer got.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(io.LimitReader(got.Body, maxAnswer))
	return got.StatusCode, string(data), err
}
