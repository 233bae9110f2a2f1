package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
)

const (
	// minPrefix is the shortest prefix of an id that a command accepts.
	minPrefix = 4
	// wholeID is the length of a session's or an escalation's id.
	wholeID = len("019478a3-0001-7def-8a12-000000000001")
)

// checkPrefix reports a usage error unless the argument can begin an id.
func checkPrefix(what, arg string) error {
	if len(arg) < minPrefix || len(arg) > wholeID || strings.Trim(arg, "0123456789abcdef-") != "" {
		return usage(fmt.Errorf("%q is not the id of %s: want a UUIDv7, or the first %d or more characters of one", arg, what, minPrefix))
	}
	return nil
}

// sessionID returns the only session whose id begins with the argument.
func (c connection) sessionID(ctx context.Context, arg string) (performatives.SessionID, error) {
	if err := checkPrefix("a session", arg); err != nil {
		return "", err
	}
	if len(arg) == wholeID {
		id, err := performatives.ParseSessionID(arg)
		if err != nil {
			return "", usage(fmt.Errorf("%q is not the id of a session: %w", arg, err))
		}
		return id, nil
	}
	found, more, err := c.sessionsFrom(ctx, arg, 2)
	if err != nil {
		return "", err
	}
	if more && len(found) < 2 {
		return "", usage(fmt.Errorf("%s may begin the ids of several sessions: give 8 or more characters", arg))
	}
	ids := make([]string, len(found))
	for i, s := range found {
		ids[i] = string(s.Session)
	}
	id, err := unique("session", arg, ids)
	return performatives.SessionID(id), err
}

// agreementOf is the agreement of an id, or the newest of a session.
func (c connection) agreementOf(ctx context.Context, arg string) (q api.GetAgreement, err error) {
	if id := agreement.ID(arg); id.Valid() {
		return api.GetAgreement{Agreement: id}, nil
	}
	q.Session, err = c.sessionID(ctx, arg)
	return q, err
}

// sessionsFrom returns sessions whose id begins with a prefix. For one of less than eight letters the broker looks at the
// newest sessions: more says that there are others.
func (c connection) sessionsFrom(ctx context.Context, prefix string, limit int) (found []api.SessionSummary, more bool, err error) {
	page, err := client.Do(ctx, c, api.SessionList, api.ListSessions{Limit: api.MaxPage, Search: prefix})
	found = slices.DeleteFunc(page.Sessions, func(s api.SessionSummary) bool { return !strings.HasPrefix(string(s.Session), prefix) })
	return found[:min(limit, len(found))], page.Next != "", err
}

// escalationID returns the only escalation whose id begins with the argument.
func (c connection) escalationID(ctx context.Context, arg string) (string, error) {
	if err := checkPrefix("an escalation", arg); err != nil || len(arg) == wholeID {
		return arg, err
	}
	var ids []string
	for item, err := range c.Escalations(ctx, api.ListEscalations{Status: "all", Limit: api.MaxPage}) {
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(string(item.ID), arg) {
			ids = append(ids, string(item.ID))
		}
	}
	return unique("escalation", arg, ids)
}

func unique(what, prefix string, ids []string) (string, error) {
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("no %s has an id that begins with %s", what, prefix)
	case 1:
		return ids[0], nil
	}
	return "", fmt.Errorf("more than one %s has an id that begins with %s, such as %s and %s", what, prefix, ids[0], ids[1])
}

// A completer returns the candidates for an argument, with descriptions.
type completer func(ctx context.Context, c connection, prefix string) ([]cobra.Completion, error)

// completeFirst completes a command's first argument from the broker.
func completeFirst(candidates completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completions(cmd, candidates, prefix)
	}
}

// completeFlag completes a flag's value from the broker.
func completeFlag(candidates completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completions(cmd, candidates, prefix)
	}
}

func completions(cmd *cobra.Command, candidates completer, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if fromEnvironment(cmd.Flags()) != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx := cmp.Or(cmd.Context(), context.Background())
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	c, err := connect(ctx, cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer c.Close() //nolint:errcheck // everything was answered
	found, err := candidates(ctx, c, prefix)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeSessions completes the ids of sessions, newest first.
func completeSessions(ctx context.Context, c connection, prefix string) (found []cobra.Completion, err error) {
	sessions, _, err := c.sessionsFrom(ctx, prefix, maxCompletions)
	for _, s := range sessions {
		found = append(found, cobra.CompletionWithDesc(string(s.Session), completionText(s.State.String(), s.Purpose)))
	}
	return found, err
}

// completeEscalations completes the ids of open escalations, most urgent first.
func completeEscalations(ctx context.Context, c connection, prefix string) (found []cobra.Completion, err error) {
	page, err := client.Do(ctx, c, api.EscalationList, api.ListEscalations{Limit: api.MaxPage})
	for _, e := range page.Escalations {
		if strings.HasPrefix(string(e.ID), prefix) {
			found = append(found, cobra.CompletionWithDesc(string(e.ID), completionText(e.Urgency, e.Purpose)))
		}
	}
	return found, err
}

// completeAgents completes the URIs of principals of a kind; "" is all kinds.
func completeAgents(kind string) completer {
	return func(ctx context.Context, c connection, prefix string) (found []cobra.Completion, err error) {
		page, err := client.Do(ctx, c, api.AgentList, api.ListAgents{Kind: kind, Limit: api.MaxPage})
		for _, card := range page.Agents {
			if strings.HasPrefix(string(card.Agent), prefix) {
				found = append(found, cobra.CompletionWithDesc(string(card.Agent), completionText(card.Kind, card.Name)))
			}
		}
		return found, err
	}
}

// completeSchemas completes the names of schemas.
func completeSchemas(ctx context.Context, c connection, prefix string) (found []cobra.Completion, err error) {
	list, err := c.Schemas(ctx)
	for _, s := range list {
		if strings.HasPrefix(s.Name, prefix) {
			found = append(found, cobra.CompletionWithDesc(s.Name, s.Kind))
		}
	}
	return found, err
}

// completionText is the description of a candidate, on one line.
func completionText(kind, text string) string {
	return render.Clean(strings.TrimSpace(kind + " " + text))
}
