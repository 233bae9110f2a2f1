package discovery_test

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-asp/parley/discovery"
)

// vectors are assessments by Bindu itself; vectors.py writes them.
//
//go:embed testdata/vectors.jsonl
var vectors []byte

// Every assessment of Bindu's is ours, to the last digit.
func TestBindu(t *testing.T) {
	t.Parallel()
	lines := bufio.NewScanner(bytes.NewReader(vectors))
	lines.Buffer(nil, 1<<20)
	count := 0
	for ; lines.Scan(); count++ {
		var v struct {
			Skills  []discovery.Skill `json:"skills"`
			Pricing jsontext.Value    `json:"pricing"`
			Queue   *int              `json:"queue"`
			Task    discovery.Task    `json:"task"`
			Want    map[string]any    `json:"want"`
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(count, err)
		}
		a := discovery.NewProfile(v.Skills, v.Pricing).Assess(v.Task.Prepare(), v.Queue, nil)
		slices.Sort(a.MatchedTags)
		slices.Sort(a.MatchedCapabilities)
		if diff := cmp.Diff(v.Want, generic(t, a)); diff != "" {
			t.Errorf("line %d: %s\n%s", count+1, diff, lines.Bytes())
		}
	}
	if count < 300 {
		t.Errorf("only %d vectors", count)
	}
}

// generic is what a reader of the answer sees.
func generic(t testing.TB, a discovery.Assessment) (read map[string]any) {
	t.Helper()
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestOddities(t *testing.T) {
	t.Parallel()
	pdf := discovery.Skill{ID: "pdf", Name: "PDF", Tags: []string{"pdf"}}
	for name, c := range map[string]struct {
		skill   discovery.Skill
		pricing string
		task    discovery.Task
		want    func(discovery.Assessment) bool
	}{
		"a task that says nothing fits by half, and matches nothing": {
			pdf, ``, discovery.Task{},
			func(a discovery.Assessment) bool {
				return a.Accepted && a.Subscores.SkillMatch == 0.5 && a.Matches == nil
			},
		},
		"a price as a number": {
			pdf, `0.5`, discovery.Task{Summary: "pdf", MaxCost: jsontext.Value(`"1"`)},
			func(a discovery.Assessment) bool { return a.Subscores.Cost == 0.75 },
		},
		"a price as a text": {
			pdf, `"2 EUR"`, discovery.Task{Summary: "pdf", MaxCost: jsontext.Value(`1`)},
			func(a discovery.Assessment) bool { return a.Rejection == discovery.TooExpensive && a.Confidence == 0.9 },
		},
		"a skill without a name": {
			discovery.Skill{Tags: []string{"pdf"}}, ``, discovery.Task{Summary: "unknown pdf"},
			func(a discovery.Assessment) bool {
				return a.Matches[0].Skill == "unknown" && a.Matches[0].Name == "unknown" && a.Matches[0].Score == 1
			},
		},
		"a tag matches although its skill's score is not above zero": {
			discovery.Skill{Tags: []string{"pdf"}, Assessment: jsontext.Value(`{"specializations":[{"domain":"pdf","confidence_boost":-1}]}`)}, ``,
			discovery.Task{Summary: "pdf"},
			func(a discovery.Assessment) bool {
				return slices.Equal(a.MatchedTags, []string{"pdf"}) && a.Matches == nil && a.Rejection == discovery.BelowThreshold
			},
		},
		"a cap beyond all numbers": {
			pdf, `"1"`, discovery.Task{Summary: "pdf", MaxCost: jsontext.Value(`"` + strings.Repeat("9", 400) + `"`)},
			func(a discovery.Assessment) bool { return a.Subscores.Cost == 1 },
		},
	} {
		a := discovery.NewProfile([]discovery.Skill{c.skill}, jsontext.Value(c.pricing)).Assess(c.task.Prepare(), nil, nil)
		if !c.want(a) {
			t.Errorf("%s: %+v", name, generic(t, a))
		}
	}
}

// With a similarity the base is 0.7 of it and 0.3 of the keywords, before specializations.
func TestSimilarity(t *testing.T) {
	t.Parallel()
	p := discovery.NewProfile([]discovery.Skill{{ID: "a", Name: "pdf tables"}, {ID: "b", Name: "images"}}, nil)
	a := p.Assess(discovery.Task{Summary: "pdf"}.Prepare(), nil, func(skill int) float64 { return []float64{0.954, -0.2}[skill] })
	want := []discovery.Match{{Skill: "a", Name: "pdf tables", Score: 0.8178, Reasons: []string{"semantic similarity: 0.95"}}}
	if diff := cmp.Diff(want, a.Matches); diff != "" {
		t.Error(diff)
	}
}

func TestNegativeWeights(t *testing.T) {
	t.Parallel()
	less := -0.1
	if got := (discovery.Weights{Cost: &less, Load: &less}).Negative(); got != "load" {
		t.Error(got)
	}
	if got := (discovery.Weights{}).Negative(); got != "" {
		t.Error(got)
	}
}

// words draws from few, so that skills and tasks have some in common. Tests that run at the
// same time share no generator.
func words() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"pdf", "invoice", "table", "extract", "image", "translate", "ab", "c"})
}

func drawSkills(t *rapid.T) []discovery.Skill {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) discovery.Skill {
		return discovery.Skill{
			ID: rapid.StringN(1, 5, 5).Draw(t, "id"), Name: words().Draw(t, "name"),
			Tags:         rapid.SliceOfN(words(), 0, 4).Draw(t, "tags"),
			AllowedTools: rapid.SliceOfN(words(), 0, 2).Draw(t, "tools"),
		}
	}), 1, 6).Draw(t, "skills")
}

func drawTask(t *rapid.T) discovery.Task {
	return discovery.Task{
		Summary:    strings.Join(rapid.SliceOfN(words(), 1, 6).Draw(t, "summary"), " "),
		MaxLatency: float64(rapid.SampledFrom([]int{0, 4000, 9000}).Draw(t, "latency")),
	}
}

func TestOrderOfSkills(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		skills, task := drawSkills(t), drawTask(t)
		shuffled := rapid.Permutation(skills).Draw(t, "shuffled")
		a := discovery.NewProfile(skills, nil).Assess(task.Prepare(), nil, nil)
		b := discovery.NewProfile(shuffled, nil).Assess(task.Prepare(), nil, nil)
		if a.Score != b.Score || a.Accepted != b.Accepted || a.Confidence != b.Confidence || a.Rejection != b.Rejection {
			t.Fatalf("%+v and %+v", a, b)
		}
	})
}

func TestWeightsScaleFreely(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, task := discovery.NewProfile(drawSkills(t), nil), drawTask(t)
		weight := rapid.IntRange(0, 9)
		factor := float64(int(1) << rapid.IntRange(0, 20).Draw(t, "factor"))
		scaled := func(by float64, w []int) discovery.Weights {
			f := make([]float64, len(w))
			for i := range w {
				f[i] = by * float64(w[i])
			}
			return discovery.Weights{SkillMatch: &f[0], IOCompatibility: &f[1], Performance: &f[2], Load: &f[3], Cost: &f[4]}
		}
		w := rapid.SliceOfN(weight, 5, 5).Draw(t, "weights")
		task.Weights = scaled(1, w)
		a := p.Assess(task.Prepare(), nil, nil)
		task.Weights = scaled(factor, w)
		b := p.Assess(task.Prepare(), nil, nil)
		if a.Score != b.Score {
			t.Fatalf("%v and %v", a.Score, b.Score)
		}
		if a.Score < 0 || a.Score > 1 {
			t.Fatalf("a score of %v", a.Score)
		}
	})
}

func TestForbiddenToolRejects(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		skills, task := drawSkills(t), drawTask(t)
		task.ForbiddenTools = rapid.SliceOfN(words(), 1, 3).Draw(t, "forbidden")
		forbidden := slices.ContainsFunc(skills, func(s discovery.Skill) bool {
			return slices.ContainsFunc(s.AllowedTools, func(tool string) bool { return slices.Contains(task.ForbiddenTools, tool) })
		})
		a := discovery.NewProfile(skills, nil).Assess(task.Prepare(), nil, nil)
		if (a.Rejection == discovery.ToolForbidden) != forbidden {
			t.Fatalf("%v: %+v", forbidden, a)
		}
	})
}

// worst is a card of 64 KiB with as many short anti-patterns as skills have room for, and specializations.
func worst() []discovery.Skill {
	skills := make([]discovery.Skill, 60)
	for i := range skills {
		var patterns, domains []string
		for j := range 100 {
			patterns = append(patterns, fmt.Sprintf("%q", fmt.Sprintf("a%d", 100*i+j)))
		}
		for j := range 5 {
			domains = append(domains, fmt.Sprintf(`{"domain":"b%d","confidence_boost":0.001}`, 5*i+j))
		}
		skills[i] = discovery.Skill{ID: fmt.Sprint(i), Name: "pdf", Assessment: jsontext.Value(
			`{"anti_patterns":[` + strings.Join(patterns, ",") + `],"specializations":[` + strings.Join(domains, ",") + `]}`)}
	}
	return skills
}

// Patterns that are many, or are looked for in long texts, are found as if each were looked for alone.
func TestManyPatterns(t *testing.T) {
	t.Parallel()
	profile := discovery.NewProfile(worst(), nil)
	rapid.Check(t, func(t *rapid.T) {
		var summary, details strings.Builder
		for range rapid.IntRange(0, 400).Draw(t, "words") {
			fmt.Fprintf(&summary, "b%d ", rapid.IntRange(0, 2000).Draw(t, "domain"))
			fmt.Fprintf(&details, "A%d ", rapid.IntRange(0, 9000).Draw(t, "pattern"))
		}
		task := discovery.Task{Summary: "pdf " + summary.String(), Details: details.String()}
		text := strings.ToLower(task.Summary + " " + task.Details)
		got := map[string]float64{}
		for _, m := range profile.Assess(task.Prepare(), nil, nil).Matches {
			got[m.Skill] = m.Score
		}
		for i := range 60 {
			out, boosts := false, 0
			for j := range 100 {
				out = out || strings.Contains(text, fmt.Sprintf("a%d", 100*i+j))
			}
			for j := range 5 {
				if strings.Contains(strings.ToLower(task.Summary), fmt.Sprintf("b%d", 5*i+j)) {
					boosts++
				}
			}
			score, matches := got[fmt.Sprint(i)]
			if matches == out {
				t.Fatalf("skill %d: an anti-pattern is there: %t, and it matches: %t", i, out, matches)
			}
			plain := discovery.NewProfile([]discovery.Skill{{ID: "x", Name: "pdf"}}, nil).Assess(task.Prepare(), nil, nil).Matches[0].Score
			if matches && math.Abs(score-plain-float64(boosts)/1000) > 0.0002 {
				t.Fatalf("skill %d has %d domains and scores %v, without them %v", i, boosts, score, plain)
			}
		}
	})
}

// BenchmarkAssessWorst is a card full of anti-patterns and a task as long as tasks may be.
func BenchmarkAssessWorst(b *testing.B) {
	profile := discovery.NewProfile(worst(), nil)
	task := discovery.Task{Summary: strings.Repeat("ab", 5000), Details: strings.Repeat("ab", 64<<10)}
	b.ReportAllocs()
	for b.Loop() {
		profile.Assess(task.Prepare(), nil, nil)
	}
}

// No card and no task makes an assessment fail, or give a number that JSON has not.
func FuzzAssess(f *testing.F) {
	f.Add([]byte(`[{"id":"a","name":"PDF","tags":["pdf"],"assessment":{"keywords":["x"],"specializations":[{"domain":"pdf","confidence_boost":1e308}]}}]`), []byte(`{"amount":"1"}`), []byte(`{"task_summary":"pdf","max_cost_amount":"2"}`), 3)
	f.Add([]byte(`[{"performance":{"avg_processing_time_ms":1e308},"capabilities_detail":[]}]`), []byte(`"1.2.3"`), []byte(`{"task_summary":"unknown","max_latency_ms":1e-300,"weights":{"cost":1e308,"load":1e308}}`), 0)
	f.Fuzz(func(t *testing.T, skills, pricing, task []byte, queue int) {
		var card []discovery.Skill
		var asked discovery.Task
		if json.Unmarshal(skills, &card) != nil || json.Unmarshal(task, &asked) != nil || !jsontext.Value(pricing).IsValid() || asked.Weights.Negative() != "" || queue < 0 {
			return
		}
		a := discovery.NewProfile(card, pricing).Assess(asked.Prepare(), &queue, nil)
		generic(t, a)
	})
}

func BenchmarkAssess(b *testing.B) {
	skills := make([]discovery.Skill, 10)
	for i := range skills {
		skills[i] = discovery.Skill{
			ID: "pdf-processing", Name: "PDF Processing", Tags: []string{"pdf", "tables", "extraction", "invoice", "ocr"},
			InputModes: []string{"application/pdf"}, OutputModes: []string{"application/json"}, AllowedTools: []string{"pdf_parser", "ocr"},
			Capabilities: jsontext.Value(`{"text_extraction":{"supported":true},"table_extraction":{"supported":true}}`),
			Performance:  jsontext.Value(`{"avg_processing_time_ms":2000}`),
			Assessment:   jsontext.Value(`{"keywords":["pdf","extract","invoice","table"],"specializations":[{"domain":"invoice","confidence_boost":0.3}],"anti_patterns":["pdf editing","create pdf"]}`),
		}
	}
	profile := discovery.NewProfile(skills, jsontext.Value(`{"amount":"0.0005"}`))
	task := discovery.Task{
		Summary: "Extract tables from PDF invoices", Details: "Process invoice PDFs and extract structured data",
		InputTypes: []string{"application/pdf"}, RequiredTools: []string{"pdf_parser"}, MaxLatency: 5000, MaxCost: jsontext.Value(`"0.001"`),
	}
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		if a := profile.Assess(task.Prepare(), discovery.QueueDepth(2), nil); !a.Accepted {
			b.Fatal(a)
		}
	}
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// cpu is the processor time of this process. Other load on the machine does not count.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
