package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
)

// A filler completes the request of a verb from a command's arguments.
type filler func(ctx context.Context, c connection, args []string) error

// asks makes a command of a verb: it sends the request, completed by fill if that is not nil, and draws the reply.
func asks[Q, A any](cmd *cobra.Command, verb api.VerbOf[Q, A], q *Q, fill filler, draw func(A, render.Style) string) *cobra.Command {
	return runs(cmd, verb.Verb, fill, func(ctx context.Context, cmd *cobra.Command, c connection) error {
		reply, err := client.Do(ctx, c, verb, *q)
		if err != nil {
			return err
		}
		return show(cmd, reply, func(s render.Style) string { return draw(reply, s) })
	})
}

// lists makes a command of a verb whose reply is a page of a list: it draws up to --limit items as one page.
func lists[Q, A any](cmd *cobra.Command, verb api.VerbOf[Q, A], q *Q, fill filler, draw func(A, render.Style) string) *cobra.Command {
	return listsOf(cmd, verb.Verb, fill, func(ctx context.Context, c connection, l listing) (A, string, error) {
		return pages(ctx, c, verb, *q, l)
	}, draw)
}

// listsOf is lists for a command that chooses itself what it asks for.
func listsOf[A any](cmd *cobra.Command, verb api.Verb, fill filler, ask func(context.Context, connection, listing) (A, string, error), draw func(A, render.Style) string) *cobra.Command {
	var l listing
	l.flags(cmd)
	before(cmd, l.check)
	return runs(cmd, verb, fill, func(ctx context.Context, cmd *cobra.Command, c connection) error {
		list, next, err := ask(ctx, c, l)
		if err != nil {
			return err
		}
		defer more(cmd, next)
		return show(cmd, list, func(s render.Style) string { return draw(list, s) })
	})
}

// runs makes a command of a verb that does more than to draw one reply.
func runs(cmd *cobra.Command, verb api.Verb, fill filler, do func(context.Context, *cobra.Command, connection) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := operatorOnly(cmd); verb.Role == api.Operator && err != nil {
			return err
		}
		return with(cmd, func(ctx context.Context, c connection) error {
			if fill != nil {
				if err := fill(ctx, c, args); err != nil {
					return err
				}
			}
			return do(ctx, cmd, c)
		})
	}
	return cmd
}

// operatorOnly refuses --as.
func operatorOnly(cmd *cobra.Command) error {
	if text(cmd, "as") != "" {
		return usage(errors.New("only an operator can do this: omit --as"))
	}
	return nil
}

// principals makes a command one of the principal of --as; without that it says who.
func principals(cmd *cobra.Command, who string) *cobra.Command {
	before(cmd, func() error {
		if text(cmd, "as") == "" {
			return usage(errors.New(who))
		}
		return nil
	})
	return cmd
}

// before has a command check its flags ahead of what it does already.
func before(cmd *cobra.Command, check func() error) {
	then := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := check(); err != nil || then == nil {
			return err
		}
		return then(cmd, args)
	}
}

// first fills in the first argument.
func first[T ~string](into *T) filler {
	return func(_ context.Context, _ connection, args []string) error {
		if len(args) > 0 {
			*into = T(args[0])
		}
		return nil
	}
}

// second fills in the second argument, after what fill does.
func second[T ~string](fill filler, into *T) filler {
	return func(ctx context.Context, c connection, args []string) error {
		if len(args) > 1 {
			*into = T(args[1])
		}
		return fill(ctx, c, args)
	}
}

// A listing is what a list command is told by --limit and --cursor.
type listing struct {
	limit  int
	cursor string
}

// defaultLimit is how many items a list prints unless --limit says otherwise.
const defaultLimit = 100

func (l *listing) flags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&l.limit, "limit", defaultLimit, "print at most `N` items; 0 prints all")
	cmd.Flags().Bool("full", false, "do not shorten ids or truncate columns")
	cmd.Flags().StringVar(&l.cursor, "cursor", "", "continue after the page that ended with this `CURSOR`")
}

func (l *listing) check() error {
	if l.limit < 0 {
		return usage(errors.New("--limit is 0 or more"))
	}
	return nil
}

// pages asks for a list, or for the part of the request, page by page up to --limit, and makes one page of them.
// next is the cursor of the page after that, "" if there is none.
func pages[Q, A any](ctx context.Context, c connection, verb api.VerbOf[Q, A], q Q, l listing) (whole A, next string, err error) {
	request := reflect.ValueOf(&q).Elem()
	cursor, limit, part := request.FieldByName("Cursor"), request.FieldByName("Limit"), request.FieldByName("Part")
	if l.cursor != "" {
		if err := setCursor(cursor, l.cursor); err != nil {
			return whole, "", err
		}
	}
	var all, opens reflect.Value
	for count := 0; ; count = all.Len() {
		if limit.IsValid() {
			limit.SetInt(api.MaxPage)
			if left := l.limit - count; l.limit > 0 && left < api.MaxPage {
				limit.SetInt(int64(left))
			}
		}
		page, err := client.Do(ctx, c, verb, q)
		if err != nil {
			return whole, "", err
		}
		reply := reflect.ValueOf(&page).Elem()
		list := reply.FieldByIndex(listIn(verb.Reply, part))
		if count > 0 {
			list.Set(reflect.AppendSlice(all, list))
		}
		if more := reply.FieldByName("Opens"); more.IsValid() {
			opens = merged(opens, more)
		}
		whole, all = page, list
		after := reflect.Indirect(reply.FieldByName("Next"))
		switch {
		case !after.IsValid() || after.IsZero():
			return whole, "", nil
		case l.limit > 0 && all.Len() >= l.limit:
			return whole, fmt.Sprint(after), nil
		}
		cursor.Set(after)
	}
}

// merged adds what the pages before one open to what it opens.
func merged(before, page reflect.Value) reflect.Value {
	if before.IsValid() && before.Len() > 0 {
		for _, k := range page.MapKeys() {
			before.SetMapIndex(k, page.MapIndex(k))
		}
		page.Set(before)
	}
	return page
}

// listIn is the list that a page is of: of a part the member of that name, else the first list.
func listIn(page reflect.Type, part reflect.Value) []int {
	for _, f := range api.Members(page) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if part.IsValid() && !part.IsZero() && part.String() != name {
			continue
		}
		if f.Type.Kind() == reflect.Slice {
			return f.Index
		}
	}
	panic(page.String() + " is no page of a list")
}

// setCursor gives the value of --cursor to the cursor of a request, which is text or a number.
func setCursor(cursor reflect.Value, text string) error {
	if cursor.Kind() == reflect.String {
		cursor.SetString(text)
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return usage(fmt.Errorf("--cursor %q is not a number", text))
	}
	cursor.SetUint(n)
	return nil
}

// more tells a person how to continue a list.
func more(cmd *cobra.Command, next string) {
	if next != "" && !asked(cmd, "json") {
		note(cmd, "There are more: --cursor "+next+" continues the list.")
	}
}
