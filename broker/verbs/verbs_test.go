package verbs

import (
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
)

// Every verb has one answer, and every answer a verb.
func TestEveryVerbIsAnswered(t *testing.T) {
	t.Parallel()
	table, all := api.Verbs(), make([]Answer, 0, len(api.Verbs()))
	for _, v := range table {
		all = append(all, Answer{Verb: v})
	}
	if _, err := byName(table, all); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		table   []api.Verb
		answers []Answer
		want    string
	}{
		{table, all[1:], "session.get has no answer"},
		{table, append(all[:len(all):len(all)], all[0]), "session.get has two answers"},
		{table[1:], all, "1 verbs that the table does not have"},
	} {
		if _, err := byName(c.table, c.answers); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("byName: %v, want %q", err, c.want)
		}
	}
}
