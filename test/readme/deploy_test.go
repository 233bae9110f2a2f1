package readme

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/parley-asp/parley/test/testkit"
)

var (
	ofParley = regexp.MustCompile(`parley_[a-z_]+`)
	selector = regexp.MustCompile(`([a-z_]+)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring) \(([a-z_, ]*)\)`)
	template = regexp.MustCompile(`\$labels\.([a-z_]+)`)
)

// faultsOf are the families and labels that an expression names, and that the table of metrics lacks.
func faultsOf(expression string, families map[string]family) (faults []string) {
	allowed := []string{"job", "instance", "pod", "le"} // of Prometheus, and of its operator
	names, up := map[string]bool{}, false
	series := selector.FindAllStringSubmatch(expression, -1)
	for _, found := range series {
		names[found[1]] = true
	}
	for _, found := range series {
		name := found[1]
		up = up || name == "up" && strings.HasPrefix(found[2], "{job")
		if !ofParley.MatchString(name) {
			continue
		}
		f, known := families[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			base, cut := strings.CutSuffix(name, suffix)
			if h := families[base]; cut && h.Type == "histogram" {
				f, known = h, true
				if !names[base] {
					faults = append(faults, "no native form of "+name)
				}
			}
		}
		if !known {
			faults = append(faults, "no family "+name)
			continue
		}
		for _, m := range matcher.FindAllStringSubmatch(found[2], -1) {
			if !slices.Contains(f.Labels, m[1]) && m[1] != "job" && m[1] != "instance" {
				faults = append(faults, name+" has no label "+m[1])
			}
		}
		allowed = append(allowed, f.Labels...)
	}
	for _, by := range grouping.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(by[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(allowed, label) {
				faults = append(faults, "by "+label+", which nothing has")
			}
		}
	}
	if !up && !ofParley.MatchString(expression) && !strings.Contains(expression, "process_") {
		faults = append(faults, "it names no family")
	}
	return faults
}

// TestAlerts: the alert rules name families and labels that there are.
func TestAlerts(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(root(t), "deploy", "prometheus", "alerts.yaml"))
	testkit.Must(t, err)
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Expr        string            `yaml:"expr"`
				For         string            `yaml:"for"`
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	testkit.Must(t, yaml.Unmarshal(data, &file))
	families, rules := tabled(t), 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules++
			for _, fault := range faultsOf(r.Expr, families) {
				t.Errorf("%s: %s", r.Alert, fault)
			}
			if r.Alert == "" || r.Annotations["summary"] == "" || !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
				t.Errorf("%s: a rule has a name, a summary and a severity", r.Alert)
			}
			for _, text := range r.Annotations {
				for _, label := range template.FindAllStringSubmatch(text, -1) {
					if name := label[1]; name != "instance" && !slices.ContainsFunc(ofParley.FindAllString(r.Expr, -1), func(f string) bool { return slices.Contains(families[f].Labels, name) }) {
						t.Errorf("%s: its text names the label %s", r.Alert, name)
					}
				}
			}
		}
	}
	if rules < 10 {
		t.Errorf("there are %d rules", rules)
	}
}

// TestDashboard: the panels name families and labels that there are, and every family has one.
func TestDashboard(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(root(t), "deploy", "grafana", "parley.json"))
	testkit.Must(t, err)
	var board struct {
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			Targets []struct {
				Expr   string `json:"expr"`
				Legend string `json:"legendFormat"`
			} `json:"targets"`
		} `json:"panels"`
	}
	testkit.Must(t, json.Unmarshal(data, &board))
	families, shown, ids := tabled(t), map[string]bool{}, map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("%s: another panel has its id", p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			for _, fault := range faultsOf(target.Expr, families) {
				t.Errorf("%s: %s", p.Title, fault)
			}
			for _, name := range ofParley.FindAllString(target.Expr, -1) {
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					name = strings.TrimSuffix(name, suffix)
				}
				shown[name] = true
			}
		}
	}
	for name := range families {
		if !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// The checks of expressions see what is wrong.
func TestFaultsOfExpressions(t *testing.T) {
	t.Parallel()
	families := map[string]family{"parley_acts_total": {"counter", []string{"code"}}, "parley_act_seconds": {"histogram", []string{"outcome"}}}
	for expression, fault := range map[string]string{
		`sum by (code) (rate(parley_acts_total{job=~"$job",code="x"}[5m]))`: "",
		`histogram_quantile(0.9, sum by (outcome) (rate(parley_act_seconds{job="x"}[5m]))) or histogram_quantile(0.9, sum by (le, outcome) (rate(parley_act_seconds_bucket{job="x"}[5m])))`: "",
		`up{job=~"parley.*"} == 0`:                          "",
		`rate(parley_act_seconds_sum[5m])`:                  "no native form of parley_act_seconds_sum",
		`parley_act_total`:                                  "no family parley_act_total",
		`parley_acts_total_count`:                           "no family parley_acts_total_count",
		`parley_acts_total{outcome="x"}`:                    "parley_acts_total has no label outcome",
		`sum by (agent) (parley_acts_total)`:                "by agent, which nothing has",
		`sum without (code, who) (rate(parley_acts_total))`: "by who, which nothing has",
		`up`: "it names no family",
	} {
		if got := strings.Join(faultsOf(expression, families), "; "); got != fault {
			t.Errorf("%s: %q, want %q", expression, got, fault)
		}
	}
}
