package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// NATSServerCommand are the arguments that make the program run [NATSServer],
// before the path of a configuration.
var NATSServerCommand = []string{"bench", "nats-server"}

// deadline bounds each step that must succeed.
const deadline = time.Minute

// NATSServer runs the NATS server in this program with a configuration file until
// it receives a signal. It prints its client URL. It is the raw target, and the
// external server of brokers that share one.
func NATSServer(out io.Writer, config string) error {
	options, err := server.ProcessConfigFile(config)
	if err != nil {
		return err
	}
	options.NoSigs = true
	ns, err := server.NewServer(options)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	ns.Start()
	if !ns.ReadyForConnections(deadline) {
		return errors.New("the NATS server is not ready for connections")
	}
	if _, err := fmt.Fprintln(out, "NATS", ns.ClientURL()); err != nil {
		return err
	}
	<-signals
	ns.Shutdown()
	ns.WaitForShutdown()
	return nil
}

// A process is a broker or a NATS server started for the measurement.
type process struct {
	cmd *exec.Cmd
	url string // of its NATS server
	log string // file with its output
}

var listening = regexp.MustCompile(`(?m)^\s*NATS\s+((?:nats|tls)://[^\s]+)`)

// start starts the program, and returns once it has printed its NATS URL.
func (o *Options) start(ctx context.Context, dir, name string, args ...string) (*process, error) {
	p := &process{log: filepath.Join(dir, name+".log")}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the process has its own descriptor
	p.cmd = exec.Command(o.Program, args...)
	p.cmd.Args[0] = "parley"
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PARLEY_") }) // they would set flags
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(deadline); ; {
		text, err := os.ReadFile(p.log)
		if err != nil {
			return p, err
		}
		if found := listening.FindSubmatch(text); found != nil {
			p.url = string(found[1])
			return p, nil
		}
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(end) || p.ended() {
			return p, fmt.Errorf("%s did not start:\n%s", strings.Join(p.cmd.Args, " "), text)
		}
	}
}

// ended reports whether the process is a zombie: it has exited and was not waited for.
func (p *process) ended() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// stop terminates the process and waits for it.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := p.cmd.Wait(); err != nil {
		text, unread := os.ReadFile(p.log)
		return errors.Join(fmt.Errorf("%s: %w\n%s", strings.Join(p.cmd.Args, " "), err, text), unread)
	}
	return nil
}
