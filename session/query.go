package session

import "github.com/parley-asp/parley/performatives"

// A QUERY asks; nothing happens to the session by it.
var _ = does(performatives.Query, deed{})
