package demo

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
)

// agreements verifies each signed agreement offline, prints it, and a copy that shows only
// one of its terms.
func (p *printer) agreements(s *stage, all []played, report *Report, o Options) error {
	key, err := inclusion.ParseKey(s.logKey)
	if err != nil {
		return err
	}
	trust := agreement.Trust{Broker: s.key, Log: key}
	for i, session := range all {
		if session.agreement == nil {
			continue
		}
		for _, copied := range []struct {
			title, file string
			agreement.Document
		}{
			{"The agreement, verified offline", "agreement.json", *session.agreement},
			{"A copy to show around: the hash and the signatures still hold", "redacted.json", session.agreement.Redact("action")},
		} {
			data, err := copied.Bytes()
			if err != nil {
				return err
			}
			found := agreement.Verify(data, trust)
			for _, fault := range found.Faults {
				report.Scenes[i].fault("%s: %s", copied.file, fault)
			}
			report.OK = report.OK && len(found.Faults) == 0
			if !p.quiet {
				p.heading(copied.title)
				p.print(render.Agreement(found, p.style) + "\n")
			}
			if o.Keep == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(o.Keep, copied.file), data, 0o600); err != nil {
				return fmt.Errorf("%s: %w", copied.file, err)
			}
		}
	}
	return nil
}
