package broker

// A failpoint is a step in the work on a session after which a broker may die. Tests
// stop it at each of them, and look at what is left.
type failpoint string

const (
	beforeAppend failpoint = "before the append"
	appended     failpoint = "after the append"
	answered     failpoint = "after the answer"
	reconciled   failpoint = "after the escalation item"
	delivering   failpoint = "after one of the inbox copies"
	delivered    failpoint = "after the inbox copies"
	told         failpoint = "after the delegates were told"
	logged       failpoint = "after the leaves of the log"
	timed        failpoint = "after the timer"
	listed       failpoint = "after the index"
)

// Failpoints are those on an act's way, in their order.
func Failpoints() []string {
	var all []string
	for _, p := range []failpoint{beforeAppend, appended, answered, reconciled, delivering, delivered, told, logged, timed, listed} {
		all = append(all, string(p))
	}
	return all
}

// AtFailpoints has a broker call do whenever it comes to a failpoint, its own or one of
// the archive. It is for tests.
func (b *Broker) AtFailpoints(do func(where string)) { b.failpoint.Store(&do) }

func (b *Broker) reaches(p failpoint) { b.Reach(string(p)) }

// Reach says that the work has come to a failpoint.
func (b *Broker) Reach(where string) {
	if do := b.failpoint.Load(); do != nil {
		(*do)(where)
	}
}
