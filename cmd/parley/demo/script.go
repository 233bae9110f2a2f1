package demo

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// The choices of --mode: files of patterns, and All for those of every mode.
const (
	ASP        = "asp"
	Bilateral  = "bilateral"
	Convergent = "convergent"
	Binding    = "binding"
	Haggle     = "haggle"
	Tender     = "tender"
	Delivery   = "delivery"
	All        = "all"
)

// The faces that agents speak to. MCP, A2A and MACP have a file of patterns each.
const (
	NATS = "nats"
	HTTP = "http"
	MCP  = "mcp"
	A2A  = "a2a"
	MACP = "macp"
)

// Faces lists what Options.Face may be.
func Faces() []string { return []string{NATS, HTTP, MCP, A2A, MACP} }

// Choices lists what Options.Mode may be over a face, the default first.
func Choices(face string) []string {
	switch face {
	case HTTP:
		return []string{ASP, Bilateral, Convergent, Binding, Delivery, All} // negotiators haggle over NATS
	case MCP, A2A:
		return []string{ASP}
	case MACP:
		return []string{Convergent}
	default:
		return []string{ASP, Bilateral, Convergent, Binding, Haggle, Tender, Delivery, All}
	}
}

//go:embed patterns/*.txt
var patterns embed.FS

// scenes reads the scenes of a face and a choice.
func scenes(face, choice string) ([]scene, error) {
	files := []string{choice}
	switch {
	case face == MCP, face == A2A, face == MACP:
		files[0] = face
	case choice == All:
		files = []string{ASP, Bilateral, Convergent, Binding, Delivery}
	}
	var all []scene
	for _, file := range files {
		text, err := patterns.ReadFile("patterns/" + file + ".txt")
		if err != nil {
			return nil, err
		}
		read, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, read...)
	}
	return all, nil
}

// A scene is one conversation, as a text in the notation of session/testdata, but with
// each body in full:
//
//	== name: Title                        a new scene
//	# …                                   what it shows; later, a remark between entries
//	buyer is agent://acme.com/b, Buyer    who takes part
//	kind buyer personal                   … and is no system
//	key buyer                             … and signs its acts itself, over HTTP too
//	limit alice 20000 USD                 … and may decide up to that
//	policy buyer                          … and answers by the policy in the lines below
//	buyer PROPOSE {…} -> seller : accepted CONVERSING     an act, and how its answer begins
//	alice sees @ask                       waits for an escalation in the human's inbox
//	broker enters breached                waits for what the broker enters
//	negotiate                             the policies decide, until the session is over
//	acts PROPOSE ACCEPT                   the acts of the transcript, where the lines are none
//	draw price                            a term whose values are drawn at the end
//	ends completed with prop_001          the outcome, and the accepted offer
//
// A line that begins with a space continues the one before. @name stands for the URI of who
// takes part, for the id of the message that as=name labels, for a time in two seconds (@soon), or for the
// hash of the newest entry (@newest). binds=seller signs an offer,
// or its acceptance, as an agreement with the seller. Over MCP, A2A and MACP a line may also
// say what its agent does there: a tool, an action or a message, with its arguments.
type scene struct {
	name, title, shows string

	roles []role
	lines []line

	acts            []string // of the transcript
	outcome, agreed string
	drawn           string
}

// A role is one principal of a scene. It has its own key, connection and inbox, and
// shares no state with the others.
type role struct {
	who    string // in the script
	agent  performatives.Agent
	name   string // on its card
	kind   string
	signs  bool // with a key of its own, over HTTP too
	limits []performatives.Limit
	policy string // by which it negotiates
}

// A line is what a principal says or does.
type line struct {
	who, what string
	object    string         // of sees: what; of a remark: the text
	body      jsontext.Value // nil if the line is no act
	to        string
	label     string
	binds     string
	answer    string // how the answer begins
}

// parse reads the scenes of a file.
func parse(text string) (all []scene, err error) {
	for text := range strings.SplitSeq(strings.ReplaceAll(text, "\n  ", "\t"), "\n") { // continued lines are one
		words := strings.Fields(text)
		switch {
		case len(words) == 0:
		case words[0] == "==":
			name, title, _ := strings.Cut(text[len("== "):], ": ")
			all = append(all, scene{name: name, title: title})
		case len(all) == 0: // about the file
		case words[0] == "#" && all[len(all)-1].shows == "":
			all[len(all)-1].shows = text[len("# "):]
		default:
			if err := all[len(all)-1].extend(words, text); err != nil {
				return nil, fmt.Errorf("%s: %w", text, err)
			}
		}
	}
	return all, nil
}

// extend adds a line to the scene.
func (s *scene) extend(words []string, text string) error {
	arg := func(i int) string { return append(words, "", "", "")[i] }
	var r *role
	switch arg(0) {
	case "kind", "key", "limit", "policy":
		if r = s.role(arg(1)); r == nil {
			return fmt.Errorf("who is %s?", arg(1))
		}
	}
	switch {
	case arg(0) == "#":
		s.lines = append(s.lines, line{what: arg(0), object: text[len("# "):]})
	case arg(1) == "is":
		agent, name, _ := strings.Cut(strings.Join(words[2:], " "), ", ")
		made := role{who: arg(0), agent: performatives.Agent(agent), name: name, kind: performatives.KindSystem}
		if made.agent.IsHuman() {
			made.kind = ""
		}
		s.roles = append(s.roles, made)
	case arg(0) == "kind":
		r.kind = arg(2)
	case arg(0) == "key":
		r.signs = true
	case arg(0) == "limit":
		l := performatives.Limit{}
		if _, err := fmt.Sscan(arg(2)+" "+arg(3), &l.MaxAmount, &l.Currency); err != nil {
			return err
		}
		r.limits = append(r.limits, l)
	case arg(0) == "policy":
		_, policy, _ := strings.Cut(text, "\t")
		r.policy = strings.ReplaceAll(policy, "\t", "\n")
	case arg(0) == "acts":
		s.acts = words[1:]
	case arg(0) == "draw":
		s.drawn = arg(1)
	case arg(0) == "ends":
		s.outcome, s.agreed = arg(1), arg(3)
	case arg(0) == "negotiate":
		s.lines = append(s.lines, line{what: arg(0)})
	case arg(0) == "broker":
		s.lines = append(s.lines, line{who: arg(0), what: arg(1), object: arg(2)})
		s.acts = append(s.acts, performatives.Inform.String())
	case s.role(arg(0)) == nil:
		return fmt.Errorf("who is %s?", arg(0))
	case arg(1) == "sees":
		s.lines = append(s.lines, line{who: arg(0), what: arg(1), object: arg(2)})
	default:
		l, err := readAct(text)
		if err != nil {
			return err
		}
		s.lines = append(s.lines, l)
		if performatives.Parse(l.what) != performatives.Unknown && strings.HasPrefix(l.answer, "accepted") {
			s.acts = append(s.acts, l.what)
		}
	}
	return nil
}

// readAct reads a line such as: buyer ACCEPT {"referenceId": "p1"} as=done : accepted CLOSED.
func readAct(text string) (l line, err error) {
	start := strings.Index(text, "{")
	if start < 0 {
		return l, errors.New("there is no body")
	}
	body := jsontext.NewDecoder(strings.NewReader(text[start:]))
	if l.body, err = body.ReadValue(); err != nil {
		return l, err
	}
	l.body = slices.Clone(l.body)
	said := strings.Fields(text[:start])
	if len(said) != 2 {
		return l, errors.New("who does what?")
	}
	l.who, l.what = said[0], said[1]
	options, answer, _ := strings.Cut(text[start+int(body.InputOffset()):]+" ", " : ")
	l.answer = strings.TrimSpace(answer)
	for _, word := range strings.Fields(strings.ReplaceAll(options, "-> ", "to=")) {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "to":
			l.to = value
		case "as":
			l.label = value
		case "binds":
			l.binds = value
		default:
			return l, fmt.Errorf("what is %s?", word)
		}
	}
	if l.answer == "" {
		return l, errors.New("what is it answered?")
	}
	return l, nil
}

func (s *scene) role(who string) *role {
	if i := slices.IndexFunc(s.roles, func(r role) bool { return r.who == who }); i >= 0 {
		return &s.roles[i]
	}
	return nil
}
