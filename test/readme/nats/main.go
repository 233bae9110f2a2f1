// Command nats stands in for the NATS command line in the README's tour, where
// that one cannot be had: it sends the requests that the same command line
// would. It knows what the README uses and refuses the rest.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "nats: error:", err)
		os.Exit(1)
	}
}

const patience = 5 * time.Second // the command line's own default

// A command is what was asked for, and how.
type command struct {
	nc    *nats.Conn
	raw   bool
	count int
}

func run(args []string) error {
	flags := flag.NewFlagSet("nats", flag.ContinueOnError)
	server := flags.String("server", os.Getenv("NATS_URL"), "")
	seed := flags.String("nkey", "", "")
	prefix := flags.String("inbox-prefix", "_INBOX", "")
	raw := flags.Bool("raw", false, "")
	count := flags.Int("count", 1, "")
	words, err := between(flags, args)
	if err != nil {
		return err
	}
	options := []nats.Option{nats.CustomInboxPrefix(*prefix)}
	if *seed != "" {
		key, err := nats.NkeyOptionFromSeed(*seed)
		if err != nil {
			return err
		}
		options = append(options, key)
	}
	if *server == "" {
		*server = nats.DefaultURL
	}
	nc, err := nats.Connect(*server, options...)
	if err != nil {
		return err
	}
	defer nc.Close()
	return command{nc, *raw, *count}.do(words)
}

// between takes flags wherever they stand, as the command line does.
func between(flags *flag.FlagSet, args []string) (words []string, err error) {
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if args = flags.Args(); len(args) > 0 {
			words, args = append(words, args[0]), args[1:]
		}
	}
	return words, nil
}

func (c command) do(words []string) error {
	switch about := strings.Join(words[:min(2, len(words))], " "); {
	case len(words) == 3 && (words[0] == "request" || words[0] == "req"):
		return c.request(words[1], words[2])
	case len(words) == 4 && about == "consumer next":
		return c.next(words[2], words[3])
	case about == "micro ls" || about == "micro list":
		return c.service("$SRV.INFO", "name", "version", "id", "description")
	case len(words) == 3 && about == "micro info":
		return c.service("$SRV.INFO."+words[2], "name", "version", "endpoints")
	case len(words) == 3 && about == "micro stats":
		return c.service("$SRV.STATS."+words[2], "id", "endpoints")
	default:
		return fmt.Errorf("this stand-in does not know %q", words)
	}
}

// request prints one answer.
func (c command) request(subject, body string) error {
	reply, err := c.nc.Request(subject, []byte(body), patience)
	if errors.Is(err, nats.ErrNoResponders) {
		return errors.New("no responders are available")
	}
	if err != nil {
		return err
	}
	if !c.raw {
		for name, values := range reply.Header {
			fmt.Printf("%s: %s\n", name, strings.Join(values, " "))
		}
	}
	fmt.Println(string(reply.Data))
	return nil
}

// next pulls messages from a durable consumer and acknowledges them.
func (c command) next(stream, consumer string) error {
	for range c.count {
		body, err := json.Marshal(map[string]any{"batch": 1, "expires": patience})
		if err != nil {
			return err
		}
		m, err := c.nc.Request("$JS.API.CONSUMER.MSG.NEXT."+stream+"."+consumer, body, patience)
		if err != nil {
			return fmt.Errorf("no message received: %w", err)
		}
		if status := m.Header.Get("Status"); status != "" {
			return fmt.Errorf("no message received: %s %s", status, m.Header.Get("Description"))
		}
		if !c.raw {
			fmt.Println("--- subject:", m.Subject)
		}
		fmt.Println(string(m.Data))
		if err := c.nc.Publish(m.Reply, []byte("+ACK")); err != nil {
			return err
		}
	}
	return c.nc.FlushTimeout(patience)
}

// service asks the replicas of services and prints some fields of the first
// answer, which a service that is not there never gives.
func (c command) service(subject string, fields ...string) error {
	reply, err := c.nc.Request(subject, nil, patience)
	if errors.Is(err, nats.ErrNoResponders) {
		return errors.New("no micro instances found")
	}
	if err != nil {
		return err
	}
	var answer map[string]any
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return err
	}
	for _, field := range slices.Sorted(slices.Values(fields)) {
		if endpoints, ok := answer[field].([]any); ok {
			for _, e := range endpoints {
				if e, ok := e.(map[string]any); ok {
					fmt.Println(e["name"], e["subject"], e["num_requests"])
				}
			}
			continue
		}
		fmt.Println(answer[field])
	}
	return nil
}
