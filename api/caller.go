package api

import "github.com/parley-asp/parley/performatives"

// Version is parley's own.
const Version = "0.1.0"

// A Caller is who calls a verb: a principal, or an operator, who sees everything.
type Caller struct {
	Agent    performatives.Agent // "" of an operator
	Operator bool
}
