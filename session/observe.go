package session

import "github.com/parley-asp/parley/performatives"

// An OBSERVE remarks; nothing happens to the session by it.
var _ = does(performatives.Observe, deed{})
