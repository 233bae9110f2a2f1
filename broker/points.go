package broker

// Points are the places on an act's way at which tests stop a broker, in their order.
func Points() []string {
	var all []string
	for _, p := range []point{beforeAppend, appended, answered, shown, delivering, delivered, timed, listed} {
		all = append(all, string(p))
	}
	return all
}

// AtPoints has a broker call f whenever work on a session gets to one of the
// points. It is for tests of what is left when a broker is gone there.
func (b *Broker) AtPoints(f func(where string)) {
	g := func(p point) { f(string(p)) }
	b.reached.Store(&g)
}
