package api

import "github.com/parley-asp/parley/performatives"

// A Caller is who calls a verb: a principal, or an operator, who sees everything.
type Caller struct {
	Agent    performatives.Agent // "" of an operator
	Operator bool
}
