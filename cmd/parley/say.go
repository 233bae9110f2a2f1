package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

func sayCommand() *cobra.Command {
	var set []string
	var head uint64
	cmd := &cobra.Command{
		Use: "say ID [MOVE [REFERENCE]]", Short: "list the moves in a session, and send one", Args: args(cobra.RangeArgs(1, 3)),
		Long: `Without MOVE it shows what is on the table and which moves the principal of --as has.
With MOVE, an act such as ACCEPT, it sends that one; REFERENCE says which if there are
several. --set fills in what the move leaves open. --head binds the move to what you
were shown: once the session has gone on, it is refused.`,
		Example:           "  parley say " + exampleSession + asCron + "\n  parley say " + exampleSession + " counter p1 --set terms.price=40 --head 3" + asCron,
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				id, err := c.sessionID(ctx, args[0])
				if err != nil {
					return err
				}
				deal, err := client.Do(ctx, c, api.SessionSnapshot, api.GetSnapshot{Session: id})
				if err != nil {
					return err
				}
				if len(args) == 1 {
					return show(cmd, deal, func(s render.Style) string { return render.Deal(deal, s) })
				}
				if cmd.Flags().Changed("head") && head != deal.Head.N {
					return session.Refuse(session.ChainConflict, "the newest entry is %d, not %d: look at the session again", deal.Head.N, head)
				}
				move, err := chosen(deal, args[1:])
				if err != nil {
					return err
				}
				receipt, err := makeMove(ctx, c.principal.Session(id), deal, move, set)
				if err != nil {
					return err
				}
				return show(cmd, receipt.Acceptance, func(render.Style) string {
					return fmt.Sprintf("%s: entry %d; the session is %s\n", move.Performative, receipt.Sequence, receipt.State)
				})
			})
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "`PATH=VALUE` of the move's body, such as terms.price=40; the value is JSON, or a text; can be repeated")
	cmd.Flags().Uint64Var(&head, "head", 0, "send it only while the session's newest entry is number `N`")
	return connects(principals(cmd, "moves are a principal's: set --as agent://… and --key"))
}

// chosen is the only move of a name, and with a second word about what that names.
func chosen(deal api.Snapshot, words []string) (api.Move, error) {
	var found []api.Move
	var all []string
	for _, m := range deal.Moves {
		all = append(all, strings.TrimSpace(m.Performative+" "+m.Reference))
		if strings.EqualFold(m.Performative, words[0]) && (len(words) == 1 || m.Reference == words[1]) {
			found = append(found, m)
		}
	}
	if len(found) == 0 && len(words) > 1 && strings.EqualFold(words[0], "ACCEPT") {
		for _, o := range deal.Offers {
			if o.ID == words[1] && o.Status == session.Open.String() && !o.Mine { // the broker says why not
				body, err := json.Marshal(performatives.AcceptBody{ReferenceID: o.ID})
				return api.Move{Performative: "ACCEPT", Reference: o.ID, Body: body}, err
			}
		}
	}
	switch wanted := strings.ToUpper(words[0]) + strings.Join(slices.Insert(words[1:], 0, ""), " "); {
	case len(all) == 0:
		return api.Move{}, errors.New("you have no move in this session now")
	case performatives.Parse(strings.ToUpper(words[0])) == performatives.Unknown:
		return api.Move{}, usage(fmt.Errorf("%s is no performative: want %s", wanted, anyOf(all)))
	case len(found) == 0: // the session may have moved on
		return api.Move{}, fmt.Errorf("%s is no move of yours now: want %s", wanted, anyOf(all))
	case len(found) > 1:
		return api.Move{}, usage(fmt.Errorf("there are %d moves %s: say which of %s", len(found), wanted, anyOf(all)))
	}
	return found[0], nil
}

// makeMove sends a move, filled in, as the next entry after what the snapshot shows.
func makeMove(ctx context.Context, s *client.Session, deal api.Snapshot, m api.Move, set []string) (client.Receipt, error) {
	fields := map[string]any{}
	if err := json.Unmarshal(m.Body, &fields); err != nil {
		return client.Receipt{}, err
	}
	for _, one := range set {
		path, text, ok := strings.Cut(one, "=")
		if !ok {
			return client.Receipt{}, usage(fmt.Errorf("--set %s: want PATH=VALUE", one))
		}
		var value any = text
		if raw := jsontext.Value(text); raw.IsValid() {
			value = raw
		}
		if !put(fields, strings.Split(path, "."), value) {
			return client.Receipt{}, usage(fmt.Errorf("--set %s: a part of the path is no object", one))
		}
	}
	body := performatives.NewBody(performatives.Parse(m.Performative))
	data, err := json.Marshal(fields)
	if err == nil {
		err = json.Unmarshal(data, body, json.RejectUnknownMembers(true))
	}
	if err != nil {
		return client.Receipt{}, usage(fmt.Errorf("the body of %s: %w", m.Performative, err))
	}
	options := []client.ActOption{client.LinkTo(performatives.Link{Sequence: deal.Head.N + 1, PreviousHash: deal.Head.Hash})}
	if m.Recipient != "" {
		options = append(options, client.To(m.Recipient))
	}
	if body.Act() == performatives.Escalate {
		options = append(options, client.Seal(performatives.SealContext, performatives.SealSuggested))
	}
	return s.Say(ctx, body, options...)
}

// put sets a member of an object by its path, and reports whether that leads through objects.
func put(object map[string]any, path []string, value any) bool {
	for _, name := range path[:len(path)-1] {
		inner, is := object[name].(map[string]any)
		if !is && object[name] != nil {
			return false
		}
		if inner == nil {
			inner = map[string]any{}
			object[name] = inner
		}
		object = inner
	}
	object[path[len(path)-1]] = value
	return true
}
