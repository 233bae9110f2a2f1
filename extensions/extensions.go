// Package extensions has the documents of extensions of other protocols, each at its own
// versioned path.
package extensions

import _ "embed" // the documents

// ASP is the extension of A2A by which sessions are held.
//
//go:embed asp/v0.1.md
var ASP string
