package readme

import (
	"bufio"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// A family is what /metrics has under one name.
type family struct {
	Type   string
	Labels []string
}

// tabled are the families of the table in OPERATIONS.md.
func tabled(t *testing.T) map[string]family {
	t.Helper()
	all := map[string]family{}
	for _, row := range tableWith(t, "`parley_acts_total`")[1:] {
		f := family{Type: row[1]}
		for _, label := range span.FindAllStringSubmatch(row[2], -1) {
			f.Labels = append(f.Labels, label[1])
		}
		slices.Sort(f.Labels)
		all[strings.Trim(row[0], "`")] = f
	}
	return all
}

// label finds the names of labels in a sample.
var label = regexp.MustCompile(`[{,]([a-z]+)="`)

// TestMetricsTable: the table of metrics has what a broker serves, and nothing else.
func TestMetricsTable(t *testing.T) {
	t.Parallel()
	certificate := server.TLS{}
	certificate.Cert, certificate.Key = testkit.NewAuthority(t).Issue("server")
	b := testkit.StartBroker(t, testkit.Options{Monitor: "127.0.0.1:0", TLS: certificate})
	answer, err := http.Get("http://" + b.MonitorAddr + "/metrics")
	testkit.Must(t, err)
	defer answer.Body.Close()
	served, labels := map[string]family{}, map[string]map[string]bool{}
	current := ""
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		line := lines.Text()
		if name, is := strings.CutPrefix(line, "# TYPE "); is {
			name, kind, _ := strings.Cut(name, " ")
			if current = name; strings.HasPrefix(name, "parley_") {
				served[name], labels[name] = family{Type: kind}, map[string]bool{}
			}
			continue
		}
		for _, l := range label.FindAllStringSubmatch(line, -1) {
			if labels[current] != nil && l[1] != "le" {
				labels[current][l[1]] = true
			}
		}
	}
	for name, f := range served {
		f.Labels = slices.Sorted(maps.Keys(labels[name]))
		served[name] = f
	}
	if diff := cmp.Diff(served, tabled(t)); diff != "" {
		t.Errorf("a broker serves (-), OPERATIONS.md has (+):\n%s", diff)
	}
}
