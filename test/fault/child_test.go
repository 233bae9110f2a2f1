package fault_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-asp/parley/test/testkit"
)

// parley is the program, built when a test first needs it.
var parley func() (string, error)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "parley-fault-")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	parley = sync.OnceValues(func() (string, error) {
		program := filepath.Join(dir, "parley")
		out, err := exec.Command("go", "build", "-ldflags=-s", "-o", program, "github.com/parley-asp/parley/cmd/parley").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("go build: %w\n%s", err, out)
		}
		return program, err
	})
	// Each test has processes of its own. More tests at once would only make them wait for each other.
	if err := flag.Set("test.parallel", "12"); err != nil { // -parallel overrides it
		fmt.Println(err)
		os.Exit(1)
	}
	status := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Println(err)
	}
	os.Exit(status)
}

// onDisk configures a server without logins.
const onDisk = "jetstream { store_dir: \"./store\" }\n"

// startNode starts a broker with a server of its own.
func startNode(t testing.TB, data, listen string) *testkit.BrokerProcess {
	t.Helper()
	return testkit.StartBrokerProcess(t, testkit.ProcessOptions{Data: data, Listen: listen, Dev: true})
}

// again starts a node that was killed on the same data and address.
func again(t testing.TB, data string, killed *testkit.BrokerProcess) *testkit.BrokerProcess {
	t.Helper()
	return startNode(t, data, strings.TrimPrefix(killed.URL, "nats://"))
}

// startBroker starts a broker at a server elsewhere. All have the same keys.
func startBroker(t testing.TB, at *testkit.ServerProcess) *testkit.BrokerProcess {
	t.Helper()
	return testkit.StartBrokerProcess(t, testkit.ProcessOptions{Data: filepath.Join(at.Dir, "keys"), NATS: at.URL(), Dev: true})
}

// startReplicated starts a broker that keeps three copies of everything, at one
// or more servers of a cluster.
func startReplicated(t testing.TB, keys, urls string) *testkit.BrokerProcess {
	t.Helper()
	return testkit.StartBrokerProcess(t, testkit.ProcessOptions{Data: keys, NATS: urls, Dev: true, Replicas: 3})
}
