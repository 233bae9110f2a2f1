package natsserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A Cluster is several servers on this machine that know each other.
type Cluster struct {
	Servers []*Server

	t      testing.TB
	health []string // URL of each server's health check
}

// StartCluster starts n servers, n1 and on, with the same configuration, and returns when all
// are up. They end with the test.
func StartCluster(t testing.TB, program, config string, n int) *Cluster {
	t.Helper()
	ports := freePorts(t, 3*n)
	clients, routes, health := ports[:n], ports[n:2*n], ports[2*n:]
	var known []string
	for _, port := range routes {
		known = append(known, fmt.Sprintf("nats://127.0.0.1:%d", port))
	}
	c := &Cluster{t: t}
	for i := range n {
		s := &Server{
			Name: fmt.Sprintf("n%d", i+1), Address: fmt.Sprintf("127.0.0.1:%d", clients[i]),
			t: t, program: program, dir: t.TempDir(),
		}
		s.write(fmt.Sprintf(`server_name: %s
listen: "127.0.0.1:%d"
http: "127.0.0.1:%d"
cluster { name: parley, listen: "127.0.0.1:%d", routes: [%s] }
include ./tested.conf
`, s.Name, clients[i], health[i], routes[i], strings.Join(known, ", ")), config)
		c.Servers = append(c.Servers, s)
		c.health = append(c.health, fmt.Sprintf("http://127.0.0.1:%d/healthz", health[i]))
	}
	started := make(chan error, n)
	for _, s := range c.Servers {
		go func() {
			_, err := s.run()
			started <- err
		}()
	}
	for range n {
		if err := <-started; err != nil {
			t.Fatal(err)
		}
	}
	c.Healthy()
	return c
}

// URL names all servers, as a client takes them.
func (c *Cluster) URL() string {
	var urls []string
	for _, s := range c.Servers {
		urls = append(urls, "nats://"+s.Address)
	}
	return strings.Join(urls, ",")
}

// Named finds a server, as JetStream names it.
func (c *Cluster) Named(name string) *Server {
	c.t.Helper()
	for _, s := range c.Servers {
		if s.Name == name {
			return s
		}
	}
	c.t.Fatalf("no server is called %q", name)
	return nil
}

// Healthy waits until each server says that it has caught up with the others: only then may
// the next be taken away.
func (c *Cluster) Healthy() {
	c.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(patience)
	for i, url := range c.health {
		for ; !healthy(url); <-tick.C {
			if time.Now().After(end) {
				c.t.Fatalf("%s has not caught up in %s", c.Servers[i].Name, patience)
			}
		}
	}
}

func healthy(url string) bool {
	answer, err := http.Get(url)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// freePorts finds ports that nothing listens on now: servers of a cluster have to know each
// other's. They are below those that systems give out by themselves, for listeners on port 0 and
// for connections, or another one could have it before the server listens.
func freePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for tries := 0; len(ports) < n; tries++ {
		port := 10_000 + rand.IntN(20_000)
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			if tries > 1000 {
				t.Fatal(err)
			}
			continue
		}
		defer l.Close() //nolint:gocritic // all at the end, so that none is found twice
		ports = append(ports, port)
	}
	return ports
}
