package testkit

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A Cluster is several server processes that know each other.
type Cluster struct {
	Servers []*ServerProcess

	t      testing.TB
	health []string // URL of each server's health check
}

// StartCluster starts n servers, n1 and on, with the same configuration, and returns when all
// have caught up with each other. Their routes ping as docs/OPERATIONS.md recommends.
func StartCluster(t testing.TB, config string, n int) *Cluster {
	t.Helper()
	ports := freePorts(t, 3*n)
	clients, routes, health := ports[:n], ports[n:2*n], ports[2*n:]
	var known []string
	for _, port := range routes {
		known = append(known, fmt.Sprintf("nats://127.0.0.1:%d", port))
	}
	c := &Cluster{t: t}
	started := make(chan error, n)
	for i := range n {
		own := fmt.Sprintf("http: \"127.0.0.1:%d\"\ncluster { name: parley, listen: \"127.0.0.1:%d\", routes: [%s], ping_interval: 2s, ping_max: 2 }\n",
			health[i], routes[i], strings.Join(known, ", "))
		s := NewServerProcess(t, fmt.Sprintf("n%d", i+1), fmt.Sprintf("127.0.0.1:%d", clients[i]), own+config)
		c.Servers = append(c.Servers, s)
		c.health = append(c.health, fmt.Sprintf("http://127.0.0.1:%d/healthz", health[i]))
		go func() { started <- s.start() }()
	}
	for range n {
		Must(t, <-started)
	}
	c.Healthy()
	return c
}

// URL names all servers, as a client takes them.
func (c *Cluster) URL() string {
	var urls []string
	for _, s := range c.Servers {
		urls = append(urls, s.URL())
	}
	return strings.Join(urls, ",")
}

// Named finds a server, as JetStream names it.
func (c *Cluster) Named(name string) *ServerProcess {
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
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for _, url := range c.health {
		Must(c.t, Serving(ctx, http.DefaultClient, url))
	}
}
