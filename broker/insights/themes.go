package insights

import (
	"slices"
	"strings"
	"unicode"
)

// Scenarios are who negotiates: two system agents, one, or none.
const (
	systems   = "system and system"
	mixed     = "system and personal"
	personals = "personal and personal"
)

// scenarioOf is that of the kinds of two principals, "" of more.
func scenarioOf(kinds []string) string {
	if len(kinds) != 2 {
		return ""
	}
	of := map[int]string{0: personals, 1: mixed, 2: systems}
	n := 0
	for _, kind := range kinds {
		if kind == "system" {
			n++
		}
	}
	return of[n]
}

// minTheme is how many letters a word of a theme has at least.
const minTheme = 4

// themes are what an objection may be about: the words of its reasoning that say something, and the phrases
// that two of them make side by side.
func themes(reasoning string) (all []string) {
	apart := func(r rune) bool { return !unicode.IsLetter(r) && r != '-' && !unicode.IsSpace(r) }
	for clause := range strings.FieldsFuncSeq(strings.ToLower(reasoning), apart) {
		before := ""
		for word := range strings.FieldsSeq(clause) {
			if word = strings.Trim(word, "-"); len([]rune(word)) < minTheme || slices.Contains(stopWords, word) {
				before = ""
				continue
			}
			if before != "" {
				all = append(all, before+" "+word)
			}
			if all = append(all, word); len(all) > maxNames {
				return all
			}
			before = word
		}
	}
	return all
}

// recurring leaves the phrases that more than one session has, and the words that none of these says as often.
func recurring(themes map[string]int) map[string]int {
	kept, said := map[string]int{}, map[string]int{}
	for theme, n := range themes {
		if first, second, phrase := strings.Cut(theme, " "); phrase && n > 1 {
			kept[theme] = n
			said[first], said[second] = max(said[first], n), max(said[second], n)
		}
	}
	for theme, n := range themes {
		if !strings.Contains(theme, " ") && n > said[theme] {
			kept[theme] = n
		}
	}
	return kept
}

// stopWords say nothing of what an objection is about.
var stopWords = strings.Fields(`about above after again against also although among another because been before being below between both
	cannot could does doesn doing done each either else enough even ever every from further gets give given gives have having here however into
	itself just less like made make makes many might more most much must need needs neither never next none nothing only other others ours
	over policy rather really same seems should since some something still such take takes than that their theirs them then there these they
	thing things this those though through together toward under until unless very want wants well were what when where whether which while
	whom whose will with within without would your yours match offer terms user users agent agents side sides`)
