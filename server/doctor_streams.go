package server

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/store"
)

// away tells which servers of a cluster the leaders of streams do not reach.
func (e *examiner) away(streams map[string]store.Servers) {
	without, worst := map[string]int{}, map[string]store.Servers{}
	for _, are := range streams {
		for _, name := range are.Away {
			without[name]++
			if before, seen := worst[name]; !seen || are.There < before.There {
				worst[name] = are
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(without)) {
		status := Warn
		if worst[name].TooFew() {
			status = Fail
		}
		e.add(status, "servers", "Start it again, or look at its log and the network.", "%s is away, which keeps %d streams: %s", name, without[name], worst[name].Missing())
	}
}

// streams examines what the store found.
func (e *examiner) streams(found store.Examination, stored bool) {
	good := true
	fault := func(status Status, do, what string, args ...any) {
		good = false
		e.add(status, "streams", do, what, args...)
	}
	if why := found.Wrong[api.RestoringStream]; why != "" { // of the rest nothing can be said yet
		e.add(Fail, "streams", "Run the restore again.", "%s", why)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(found.Wrong)) {
		fault(Fail, "Change it by 'nats stream edit', or restore a backup; see docs/PROTOCOL.md, section 2.", "%s: %s", name, found.Wrong[name])
	}
	if len(found.Lost) > 0 {
		fault(Fail, "Restore a backup. Or have serve go on without them, by --accept-lost.", "the store has lost %s", strings.Join(found.Lost, ", "))
	}
	good = e.shardsOf(found.Shards) && good
	for _, name := range slices.Sorted(maps.Keys(found.Replicas)) {
		if is := found.Replicas[name]; e.o.Replicas > 0 && is != e.o.Replicas {
			fault(Warn, "A start with --replicas changes it, in a cluster of that many servers.", "%s has %d replicas, not %d", name, is, e.o.Replicas)
		}
	}
	e.away(found.Servers)
	if len(found.Missing) > 0 {
		status := OK
		if found.Acts+found.Archived > 0 {
			status = Warn
		}
		fault(status, "", "serve makes %s", strings.Join(found.Missing, ", "))
	}
	if err := CheckKeys(e.o.Data, found.Keys); (errors.Is(err, ErrKeyLost) || errors.Is(err, ErrKeyReplaced)) && !e.lost {
		e.add(Fail, "keys", "Copy them from another broker, or from a backup.", "%v", err)
	}
	if _, err := os.Stat(filepath.Join(e.o.Data, BrokerSeed)); err != nil && found.Acts+found.Archived > 0 && !stored {
		fault(Fail, "Copy it from another broker or a backup.", "there are transcripts, and %s has no %s", e.o.Data, BrokerSeed)
	}
	if found.Used > 0.8 {
		fault(Warn, "Raise the account's limit, or keep less.", "JetStream has used %.0f %% of what the account may store", 100*found.Used)
	}
	if good {
		var replicas []string
		for _, n := range slices.Compact(slices.Sorted(maps.Values(found.Replicas))) {
			replicas = append(replicas, strconv.Itoa(n))
		}
		e.add(OK, "streams", "", "their settings are as they should be; replicas: %s, acts: %d, archived sessions: %d", strings.Join(replicas, " or "), found.Acts, found.Archived)
	}
}
