//go:build long

package fault_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// A lan is three hosts, each a network namespace with a NATS server. Every two
// have a link of their own for the cluster, and each has one to us. What is sent
// over a link that is cut is lost without a word.
type lan struct {
	t    testing.TB
	port map[string]string // our end of each host's end of a link, and the bridge that it is plugged in
}

func startLAN(t testing.TB) *lan {
	t.Helper()
	l := &lan{t: t, port: map[string]string{}}
	run(t, "mount", "-t", "tmpfs", "tmpfs", "/run")
	l.bridge("us", "10.9.0.254/24")
	for i := 1; i <= 3; i++ {
		run(t, "ip", "netns", "add", host(i))
		run(t, "ip", "netns", "exec", host(i), "ip", "link", "set", "lo", "up")
		l.plug(i, fmt.Sprintf("us%d", i), "us", fmt.Sprintf("10.9.0.%d/24", i))
		// From host to host there is no way through us.
		run(t, "bridge", "link", "set", "dev", fmt.Sprintf("us%d", i), "isolated", "on")
	}
	for i := 1; i <= 3; i++ {
		for j := i + 1; j <= 3; j++ {
			name := fmt.Sprintf("b%d%d", i, j)
			l.bridge(name, "")
			for _, end := range [][2]int{{i, j}, {j, i}} {
				l.plug(end[0], fmt.Sprintf("p%d%d", end[0], end[1]), name, fmt.Sprintf("10.8.%d%d.%d/24", i, j, end[0]))
			}
		}
	}
	for i := 1; i <= 3; i++ {
		l.serve(i)
	}
	return l
}

func host(i int) string { return fmt.Sprintf("n%d", i) }

func address(i int) string { return fmt.Sprintf("nats://10.9.0.%d:4222", i) }

func (l *lan) bridge(name, ours string) {
	run(l.t, "ip", "link", "add", name, "type", "bridge")
	if ours != "" {
		run(l.t, "ip", "addr", "add", ours, "dev", name)
	}
	run(l.t, "ip", "link", "set", name, "up")
}

// plug gives a host an interface that ends in a bridge.
func (l *lan) plug(i int, port, bridge, theirs string) {
	run(l.t, "ip", "link", "add", port, "type", "veth", "peer", "name", "e"+port, "netns", host(i))
	run(l.t, "ip", "link", "set", port, "master", bridge, "up")
	run(l.t, "ip", "netns", "exec", host(i), "ip", "addr", "add", theirs, "dev", "e"+port)
	run(l.t, "ip", "netns", "exec", host(i), "ip", "link", "set", "e"+port, "up")
	l.port[port] = bridge
}

func (l *lan) serve(i int) {
	l.t.Helper()
	var routes []string
	for j := 1; j <= 3; j++ {
		if j != i {
			routes = append(routes, fmt.Sprintf("nats://10.8.%d%d.%d:6222", min(i, j), max(i, j), j))
		}
	}
	s := testkit.NewServerProcess(l.t, host(i), strings.TrimPrefix(address(i), "nats://"), onDisk+fmt.Sprintf(`http: "10.9.0.%d:8222"
ping_interval: "1s", ping_max: 2
cluster { name: parley, listen: "0.0.0.0:6222", routes: [%s], ping_interval: "1s" }
`, i, strings.Join(routes, ", ")))
	s.Via = []string{"ip", "netns", "exec", host(i)}
	s.Start()
}

// cut cuts links; the function that it returns mends them.
func (l *lan) cut(ports ...string) (mend func()) {
	for _, port := range ports {
		run(l.t, "ip", "link", "set", port, "nomaster")
	}
	return func() {
		for _, port := range ports {
			run(l.t, "ip", "link", "set", port, "master", l.port[port])
			if strings.HasPrefix(port, "us") {
				run(l.t, "bridge", "link", "set", "dev", port, "isolated", "on")
			}
		}
		run(l.t, "ip", "neigh", "flush", "dev", "us") // who was looked for in vain meanwhile is looked for anew
	}
}

// TestPartitioned cuts servers of a cluster off from each other, from everybody,
// or only from one other, while agents and brokers at each of them go on.
func TestPartitioned(t *testing.T) {
	if !alone(t) {
		return
	}
	l := startLAN(t)
	keys, all := t.TempDir(), strings.Join([]string{address(1), address(2), address(3)}, ",")
	for range 3 {
		startReplicated(t, keys, all)
	}
	first := fault.NewWitness(t, address(1))
	var talks []*talk
	for i, w := range []*fault.Witness{first, first.Beside(address(2)), first.Beside(address(3))} {
		talks = append(talks, talkOf(w, 1, uint64(i)))
	}
	random := rand.New(rand.NewPCG(7, 7))
	endLag := func() {} // ends the time in which readings may lag: OPERATIONS.md, "Three servers"
	cuts := 6
	if testing.Short() {
		cuts = 3 // one of each kind
	}
	for n := range cuts {
		i := 1 + random.IntN(3)
		j, k := 1+i%3, 1+(i+1)%3
		ij, ik, us := fmt.Sprintf("p%d%d", i, j), fmt.Sprintf("p%d%d", i, k), fmt.Sprintf("us%d", i)
		what, ports := "from the others", []string{ij, ik}
		switch n % 3 {
		case 1:
			what, ports = "from everybody", []string{ij, ik, us}
		case 2:
			what, ports = "from "+host(j), []string{ij}
		}
		t.Logf("%s is cut off %s", host(i), what)
		endLag()
		if len(ports) == 1 { // two servers lead in turn
			endLag = mayLag(talks)
		}
		mend := l.cut(ports...)
		for _, other := range []int{j, k} { // the others go on, with other leaders if need be
			talks[other-1].after(2)
		}
		if len(ports) > 1 { // whoever comes back has one link before the other, and may lead at once
			endLag = mayLag(talks)
		}
		mend()
		for _, k := range talks {
			k.after(1)
		}
	}
	endLag()
	for _, k := range talks {
		k.check(t, address(1), cuts, "partitions")
	}
}

// TestReconnects cuts off the server to which all brokers are connected. They connect to another
// one, and whoever speaks there is answered.
func TestReconnects(t *testing.T) {
	if !alone(t) {
		return
	}
	l := startLAN(t)
	connect := l.cut("us1", "us2")
	keys, all := t.TempDir(), strings.Join([]string{address(1), address(2), address(3)}, ",")
	for range 2 {
		startReplicated(t, keys, all)
	}
	connect()
	k := talkOf(fault.NewWitness(t, address(1)), 1, 0)
	k.after(1)
	mend := l.cut("p31", "p32")
	k.after(2)
	mend()
	k.check(t, address(1), 1, "servers left")
}
