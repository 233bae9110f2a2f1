package testkit

import "github.com/parley-asp/parley/test/natskit"

// Clock tells the time that a test wants.
type Clock = natskit.Clock

// Patience is how long a test waits for what must happen.
const Patience = natskit.Patience

// What needs no broker is natskit's, and is here for tests that need one, too.
var (
	Shards       = natskit.Shards
	Must         = natskit.Must
	Allowed      = natskit.Allowed
	Denied       = natskit.Denied
	CodeOf       = natskit.CodeOf
	Eventually   = natskit.Eventually
	Until        = natskit.Until
	StoppedClock = natskit.StoppedClock
	NewKey       = natskit.NewKey
	Public       = natskit.Public
	Signer       = natskit.Signer
	Login        = natskit.Login
	LoginOf      = natskit.LoginOf
	LoginKeys    = natskit.LoginKeys
	Bare         = natskit.Bare
	NewLogins    = natskit.NewLogins
	NewID        = natskit.NewID
	NewSession   = natskit.NewSession
)
