package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// Nsc does what a script of nsc commands does, with the library that nsc is made of, and returns
// the server's configuration that comes of it. It fails the test on a command or a flag that it
// does not know, so that what a script says is what was tested. It knows what parley prints, and
// of a shell no more than "cat > FILE <<'END'".
func Nsc(t testing.TB, script string) (config string) {
	t.Helper()
	n := &nsc{TB: t, dir: t.TempDir(), accounts: map[string]*jwt.AccountClaims{}, keys: map[string]nkeys.KeyPair{}, users: map[string]string{}}
	lines := strings.Split(script, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		file, here := strings.CutPrefix(line, "cat > ")
		switch {
		case line == "", line == "set -e", strings.HasPrefix(line, "#"):
		case here:
			end := i + 1 + slices.Index(lines[i+1:], "END")
			n.write(strings.TrimSuffix(file, " <<'END'"), strings.Join(lines[i+1:end], "\n")+"\n")
			i = end
		default:
			n.run(line)
		}
	}
	text := n.read("parley.conf")
	return strings.Replace(text, "include ./resolver.conf", n.read("resolver.conf"), 1)
}

type nsc struct {
	testing.TB
	dir      string
	operator nkeys.KeyPair
	name     string
	system   string // account
	accounts map[string]*jwt.AccountClaims
	keys     map[string]nkeys.KeyPair // of the accounts made here
	users    map[string]string        // by account and name
}

func (n *nsc) path(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(n.dir, file)
}

func (n *nsc) write(file, text string) {
	n.Helper()
	n.must(os.WriteFile(n.path(file), []byte(text), 0o600))
}

func (n *nsc) read(file string) string {
	n.Helper()
	text, err := os.ReadFile(n.path(file))
	n.must(err)
	return string(text)
}

func (n *nsc) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// run runs one command.
func (n *nsc) run(line string) {
	n.Helper()
	words := split(line)
	verb := 0
	for verb < len(words) && !strings.HasPrefix(words[verb], "--") {
		verb++
	}
	command, flags := strings.Join(words[:verb], " "), parse(words[verb:])
	do, known := map[string]struct {
		flags string
		do    func(map[string]string)
	}{
		"nsc add operator":    {"name sys", n.addOperator},
		"nsc import account":  {"file overwrite", n.importAccount},
		"nsc add user":        {"account name public-key allow-pub allow-sub", n.addUser},
		"nsc describe user":   {"account name raw output-file", n.describeUser},
		"nsc generate config": {"mem-resolver sys-account config-file", n.generateConfig},
	}[command]
	if !known {
		n.Fatalf("no such command: %s", line)
	}
	for flag := range flags {
		if !slices.Contains(strings.Fields(do.flags), flag) {
			n.Fatalf("%s has no --%s", command, flag)
		}
	}
	do.do(flags)
}

// split takes a line apart at spaces that are not in single quotes.
func split(line string) (words []string) {
	quoted := false
	for _, word := range strings.FieldsFunc(line, func(c rune) bool {
		quoted = quoted != (c == '\'')
		return c == ' ' && !quoted
	}) {
		words = append(words, strings.ReplaceAll(word, "'", ""))
	}
	return words
}

func parse(words []string) map[string]string {
	flags, last := map[string]string{}, ""
	for _, word := range words {
		if flag, is := strings.CutPrefix(word, "--"); is {
			flags[flag], last = "", flag
		} else {
			flags[last] = word
		}
	}
	return flags
}

func (n *nsc) addOperator(flags map[string]string) {
	n.Helper()
	var err error
	n.operator, err = nkeys.CreateOperator()
	n.must(err)
	n.name = flags["name"]
	if _, sys := flags["sys"]; !sys {
		return
	}
	n.keys["SYS"], err = nkeys.CreateAccount()
	n.must(err)
	n.system, err = n.keys["SYS"].PublicKey()
	n.must(err)
	n.accounts["SYS"] = jwt.NewAccountClaims(n.system)
	n.accounts["SYS"].Name = "SYS"
}

// importAccount takes an account that has signed itself; what blocks is refused.
func (n *nsc) importAccount(flags map[string]string) {
	n.Helper()
	claims, err := jwt.DecodeAccountClaims(strings.TrimSpace(n.read(flags["file"])))
	n.must(err)
	if !claims.IsSelfSigned() {
		n.Fatalf("account %s has not signed itself", claims.Name)
	}
	checked := jwt.CreateValidationResults()
	claims.Validate(checked)
	for _, issue := range checked.Issues {
		if issue.Blocking {
			n.Errorf("account %s: %s", claims.Name, issue.Description)
		}
	}
	n.accounts[claims.Name] = claims
}

func (n *nsc) addUser(flags map[string]string) {
	n.Helper()
	claims := jwt.NewUserClaims(flags["public-key"])
	claims.Name = flags["name"]
	claims.Pub.Allow.Add(strings.Split(flags["allow-pub"], ",")...)
	claims.Sub.Allow.Add(strings.Split(flags["allow-sub"], ",")...)
	key := n.keys[flags["account"]]
	if key == nil {
		n.Fatalf("nsc has no key of account %s", flags["account"])
	}
	token, err := claims.Encode(key)
	n.must(err)
	n.users[flags["account"]+"/"+claims.Name] = token
}

func (n *nsc) describeUser(flags map[string]string) {
	n.Helper()
	token, there := n.users[flags["account"]+"/"+flags["name"]]
	if _, raw := flags["raw"]; !raw || !there {
		n.Fatalf("nsc describe user %v", flags)
	}
	text, err := jwt.DecorateJWT(token)
	n.must(err)
	n.write(flags["output-file"], string(text))
}

func (n *nsc) generateConfig(flags map[string]string) {
	n.Helper()
	public, err := n.operator.PublicKey()
	n.must(err)
	operator := jwt.NewOperatorClaims(public)
	operator.Name, operator.SystemAccount = n.name, n.system
	token, err := operator.Encode(n.operator)
	n.must(err)
	var out strings.Builder
	fmt.Fprintf(&out, "operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n", token, n.accounts[flags["sys-account"]].Subject)
	for _, claims := range n.accounts {
		token, err := claims.Encode(n.operator)
		n.must(err)
		fmt.Fprintf(&out, "  %s: %s\n", claims.Subject, token)
	}
	out.WriteString("}\n")
	n.write(flags["config-file"], out.String())
}
