package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The servers of a peer: a PostgreSQL and the API before it, or the one over NATS.
type servers struct {
	bin, dir   string
	postmaster string // process id, "" for none
	api        *exec.Cmd
	url        string // of the API
	inboxes    bool   // agents have durable inboxes there
}

// databaseURL is the environment variable that tells the API where PostgreSQL is.
const databaseURL = "PEERS_DATABASE_URL"

// newestPostgres finds the server's programs where Debian's packages put them.
func newestPostgres() string {
	found, err := filepath.Glob("/usr/lib/postgresql/[0-9]*/bin")
	if err != nil || len(found) == 0 {
		return ""
	}
	return slices.MaxFunc(found, func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) })
}

// startServers starts both in a new directory. PostgreSQL keeps its settings as delivered.
func startServers(ctx context.Context, bin, parent string) (s *servers, err error) {
	if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
		return nil, fmt.Errorf("no PostgreSQL server: apt-get install postgresql, or name the directory of its programs with --postgres: %w", err)
	}
	s = &servers{bin: bin}
	if s.dir, err = os.MkdirTemp(parent, "peers-postgres-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	password, data := rand.Text(), s.file("data")
	if err := os.WriteFile(s.file("password"), []byte(password), 0o600); err != nil {
		return s, err
	}
	if os.Geteuid() == 0 { // then PostgreSQL runs as the user of Debian's packages
		if said, err := exec.CommandContext(ctx, "chown", "-R", "postgres", s.dir).CombinedOutput(); err != nil {
			return s, fmt.Errorf("chown: %w: %s", err, said)
		}
	}
	if err := s.run(ctx, "initdb", "-D", data, "-U", "peers", "-A", "scram-sha-256", "--pwfile", s.file("password"), "-E", "UTF8", "--no-locale"); err != nil {
		return s, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0") // finds a free port
	if err != nil {
		return s, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return s, err
	}
	_, port, _ := strings.Cut(address, ":")
	if err := s.run(ctx, "pg_ctl", "-D", data, "-w", "-o", "-h 127.0.0.1 -k '' -p "+port, "start"); err != nil {
		return s, err
	}
	pid, err := os.ReadFile(s.file("data/postmaster.pid"))
	if err != nil {
		return s, err
	}
	s.postmaster, _, _ = strings.Cut(string(pid), "\n")
	return s, s.startAPI(ctx, overPostgres, databaseURL+fmt.Sprintf("=postgres://peers:%s@%s/postgres?sslmode=disable", password, address))
}

// startNATS starts an API over NATS in a new directory.
func startNATS(ctx context.Context, parent, name string) (s *servers, err error) {
	s = &servers{inboxes: name == overInboxes}
	if s.dir, err = os.MkdirTemp(parent, "peers-nats-"); err != nil {
		return nil, err
	}
	if err := s.startAPI(ctx, name); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *servers) file(name string) string { return filepath.Join(s.dir, name) }

// run runs one of PostgreSQL's programs to its end. Its output goes to a file: a server that
// it starts would keep a pipe open.
func (s *servers) run(ctx context.Context, program string, args ...string) error {
	command := append([]string{filepath.Join(s.bin, program)}, args...)
	if os.Geteuid() == 0 {
		command = append([]string{"runuser", "-u", "postgres", "--"}, command...)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for us, who stop the server
	log, err := os.OpenFile(s.file("log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // it is for people
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		text, unread := os.ReadFile(s.file("log"))
		return errors.Join(fmt.Errorf("%s: %w\n%s", program, err, text), unread)
	}
	return nil
}

// startAPI starts this program as an API, which prints its URL.
func (s *servers) startAPI(ctx context.Context, name string, environment ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, name)
	cmd.Env, cmd.Dir = append(os.Environ(), environment...), s.dir
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.api = cmd
	defer context.AfterFunc(ctx, func() { cmd.Process.Kill() })() //nolint:errcheck // then it is gone
	line, err := bufio.NewReader(out).ReadString('\n')
	s.url = strings.TrimSpace(line)
	return err
}

// stop stops both and removes their directory.
func (s *servers) stop() error {
	var failed []error
	if s.api != nil {
		failed = append(failed, s.api.Process.Signal(syscall.SIGTERM), s.api.Wait())
	}
	if _, err := os.Stat(s.file("data/postmaster.pid")); err == nil { // also if pg_ctl was interrupted
		failed = append(failed, s.run(context.Background(), "pg_ctl", "-D", s.file("data"), "-w", "-m", "fast", "stop"))
	}
	return errors.Join(append(failed, os.RemoveAll(s.dir))...)
}

// cpu is the processor time of the API and of PostgreSQL's processes, the ended ones included.
func (s *servers) cpu() (time.Duration, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	var ticks int64
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has just ended
		}
		// Behind the name in brackets are the fields of proc_pid_stat(5) from the third on.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		pid, parent, times := filepath.Base(filepath.Dir(file)), fields[1], fields[11:13] // utime, stime
		switch {
		case pid == s.postmaster:
			times = fields[11:15] // and cutime, cstime: of children that have ended
		case pid != strconv.Itoa(s.api.Process.Pid) && parent != s.postmaster:
			continue
		}
		for _, field := range times {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, err
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * (time.Second / 100), nil // USER_HZ
}
