package discovery

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// A Skill is what a card says of one thing that its agent can do. Performance and
// Assessment that are no objects are ignored.
type Skill struct {
	ID           string         `json:"id"`
	Name         string         `json:"name"`
	Description  string         `json:"description,omitzero"`
	Tags         []string       `json:"tags,omitzero"`
	InputModes   []string       `json:"input_modes,omitzero"`  // MIME types
	OutputModes  []string       `json:"output_modes,omitzero"` // MIME types
	Capabilities jsontext.Value `json:"capabilities_detail,omitzero"`
	AllowedTools []string       `json:"allowed_tools,omitzero"`
	Performance  jsontext.Value `json:"performance,omitzero"` // {avg_processing_time_ms}
	Assessment   jsontext.Value `json:"assessment,omitzero"`  // {keywords, specializations, anti_patterns}
}

// assessed is what a skill says of tasks that it fits.
type assessed struct {
	Keywords        []string         `json:"keywords"`
	Specializations []jsontext.Value `json:"specializations"`
	AntiPatterns    []string         `json:"anti_patterns"`
}

// assessed reads what the skill says of tasks that it fits. What cannot be read says nothing.
func (s Skill) assessed() (says assessed) {
	if s.Assessment.Kind() == '{' {
		_ = json.Unmarshal(s.Assessment, &says)
	}
	return says
}

// A specialization raises the score of tasks of a domain.
type specialization struct {
	Domain string  `json:"domain"`
	Boost  float64 `json:"confidence_boost"`
}

// A skill is a Skill that has been read once for all tasks.
type skill struct {
	id, name        string
	tags            []named
	capabilities    []named
	keywords        []string         // each once
	specializations []specialization // domains in lower case
	antiPatterns    []string         // in lower case
}

// named is a tag or a capability with those of its words that are keywords of the skill.
type named struct {
	name  string
	words []string
}

func readSkill(s Skill) skill {
	r := skill{id: orUnknown(s.ID), name: orUnknown(s.Name)}
	keywords := set{}
	says := s.assessed()
	for _, keyword := range says.Keywords {
		keywords[lower(keyword)] = true
	}
	for _, tag := range s.Tags {
		keywords.addTokens(tag)
		r.tags = append(r.tags, named{tag, strings.FieldsFunc(lower(tag), isSpace)})
	}
	keywords.addTokens(r.name)
	for _, capability := range members(s.Capabilities) {
		keywords.addTokens(capability)
		r.capabilities = append(r.capabilities, named{capability, strings.Split(lower(capability), "_")})
	}
	r.keywords = slices.Collect(maps.Keys(keywords))
	for _, all := range [][]named{r.tags, r.capabilities} {
		for i := range all {
			all[i].words = slices.DeleteFunc(all[i].words, func(word string) bool { return !keywords[word] })
		}
	}
	for _, raw := range says.Specializations {
		var of specialization
		if raw.Kind() == '{' && json.Unmarshal(raw, &of) == nil && of.Domain != "" {
			of.Domain = lower(of.Domain)
			r.specializations = append(r.specializations, of)
		}
	}
	for _, pattern := range says.AntiPatterns {
		r.antiPatterns = append(r.antiPatterns, lower(pattern))
	}
	return r
}

// Longest is how many items the longest list of the skill has.
func (s Skill) Longest() int {
	says := s.assessed()
	return max(len(s.Tags), len(s.InputModes), len(s.OutputModes), len(s.AllowedTools), len(members(s.Capabilities)),
		len(says.Keywords), len(says.Specializations), len(says.AntiPatterns))
}

// Text is what a skill says of itself, for an embedding: its name, description, tags,
// keywords and capabilities.
func (s Skill) Text() string {
	says := s.assessed()
	var parts []string
	for _, part := range []string{s.Name, s.Description, strings.Join(s.Tags, " "), strings.Join(says.Keywords, " ")} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(append(parts, strings.Join(members(s.Capabilities), " ")), " ")
}

func orUnknown(name string) string {
	if name == "" {
		return "unknown"
	}
	return name
}

// milliseconds reads avg_processing_time_ms.
func (s Skill) milliseconds() (ms float64, ok bool) {
	if s.Performance.Kind() != '{' {
		return 0, false
	}
	var says struct {
		Average *float64 `json:"avg_processing_time_ms"`
	}
	if json.Unmarshal(s.Performance, &says) != nil || says.Average == nil {
		return 0, false
	}
	return *says.Average, true
}

// members lists the names of an object's members in their order.
func members(object jsontext.Value) (names []string) {
	d := jsontext.NewDecoder(strings.NewReader(string(object)))
	if start, err := d.ReadToken(); err != nil || start.Kind() != '{' {
		return nil
	}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			break
		}
		names = append(names, token.String())
		if d.SkipValue() != nil {
			break
		}
	}
	return names
}

// matching lists those of which a word is among the keywords, after a title, and adds them
// to all that were found. It is "" if there is none.
func matching(title string, names []named, keywords set, all *found) string {
	var list strings.Builder
	for _, one := range names {
		if !slices.ContainsFunc(one.words, func(word string) bool { return keywords[word] }) {
			continue
		}
		if list.Len() == 0 {
			list.Grow(64)
			list.WriteString(title)
		} else {
			list.WriteString(", ")
		}
		list.WriteString(one.name)
		all.add(one.name)
	}
	return list.String()
}

// found is names, each once, in the order in which they were found.
type found struct {
	names []string
	have  set
}

func (f *found) add(name string) {
	if f.have[name] {
		return
	}
	if f.have == nil {
		f.have = set{}
	}
	f.have[name] = true
	f.names = append(f.names, name)
}

// isSpace is Unicode's white space, with the four separators of ASCII.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// lower maps to lower case by the whole of Unicode: İ becomes two code points, and a Σ
// that ends a word becomes ς.
func lower(text string) string {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return cases.Lower(language.Und).String(text)
		}
	}
	return strings.ToLower(text)
}
