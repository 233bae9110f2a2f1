package bench

import (
	"bufio"
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
	cmd  *exec.Cmd
	url  string // of its NATS server
	http string // URL of its HTTP, if it serves that
	log  string // file with its output
}

var (
	listening = regexp.MustCompile(`^\s*NATS\s+((?:nats|tls)://[^\s]+)`)
	serving   = regexp.MustCompile(`^\s*HTTP\s+(http://[^\s]+)`)
)

// start starts the program, and returns once it has printed its NATS URL, and that of HTTP.
func (o *Options) start(ctx context.Context, dir, name string, args ...string) (*process, error) {
	p := &process{log: filepath.Join(dir, name+".log"), cmd: exec.Command(o.Program, args...)}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	p.cmd.Args[0] = "parley"
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PARLEY_") }) // they would set flags
	out, err := p.cmd.StdoutPipe()
	p.cmd.Stderr = p.cmd.Stdout
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	defer context.AfterFunc(ctx, func() { p.cmd.Process.Kill() })() //nolint:errcheck // then it is gone
	lines := bufio.NewReader(io.TeeReader(out, log))
	for p.url == "" || p.http == "" && slices.Contains(args, httpFlag) {
		line, err := lines.ReadString('\n')
		if found := listening.FindStringSubmatch(line); found != nil {
			p.url = found[1]
		} else if found := serving.FindStringSubmatch(line); found != nil {
			p.http = found[1]
		} else if err != nil {
			text, _ := os.ReadFile(p.log)
			return p, errors.Join(fmt.Errorf("%s did not start: %w\n%s", strings.Join(p.cmd.Args, " "), err, text), log.Close())
		}
	}
	go func() {
		defer log.Close() //nolint:errcheck // it is for people
		io.Copy(log, out) //nolint:errcheck // until the process ends
	}()
	return p, nil
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
