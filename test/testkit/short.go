package testkit

import "testing"

// Amount is how much of something a test makes: all of it, or with -short, as under the race
// detector, an eighth.
func Amount(all int) int {
	if testing.Short() {
		return all / 8
	}
	return all
}
