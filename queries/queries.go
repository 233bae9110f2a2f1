// Package queries answers what principals ask of sessions, checks and their inboxes. It writes nothing but consumers.
package queries

import (
	"github.com/parley-asp/parley/access"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/entries"
	"github.com/parley-asp/parley/sessionlist"
	"github.com/parley-asp/parley/store"
)

// Options say where the answers are.
type Options struct {
	Access  *access.Access
	Entries *entries.Reader
	List    *sessionlist.List
	Store   *store.Store
	Schema  func(name string) (api.Schema, bool) // of terms
}

// Queries answers verbs that read.
type Queries struct{ Options }

// New makes the answers.
func New(o Options) *Queries { return &Queries{o} }
