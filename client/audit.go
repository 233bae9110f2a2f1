package client

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// AuditedSessions are all sessions that have a transcript, whether the list of
// sessions has them or not.
func (o *Operator) AuditedSessions(ctx context.Context) ([]performatives.SessionID, error) {
	var all []performatives.SessionID
	for cursor := 0; ; {
		page, err := call(ctx, &o.Calls, api.AuditSessions, api.ListAudit{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		all = append(all, page.Sessions...)
		if page.Next == nil {
			return all, nil
		}
		cursor = *page.Next
	}
}

// Stored is a session's transcript byte for byte as it is stored, also one that
// the broker cannot make sense of any more.
func (o *Operator) Stored(ctx context.Context, id performatives.SessionID) ([][]byte, error) {
	var all [][]byte
	for cursor := uint64(0); ; {
		page, err := call(ctx, &o.Calls, api.AuditMessages, api.AuditTranscript{Session: id, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		all = append(all, page.Messages...)
		if page.Next == 0 {
			return all, nil
		}
		cursor = page.Next
	}
}

// Held is what the broker keeps of a session beside its transcript.
func (o *Operator) Held(ctx context.Context, id performatives.SessionID) (api.Held, error) {
	held, err := call(ctx, &o.Calls, api.AuditSession, api.AuditRef{Session: id})
	for next := held.Next; err == nil && next != ""; {
		var page api.Held
		page, err = call(ctx, &o.Calls, api.AuditSession, api.AuditRef{Session: id, Cursor: next})
		held.Items = append(held.Items, page.Items...)
		held.Copies = append(held.Copies, page.Copies...)
		held.Inboxes = append(held.Inboxes, page.Inboxes...)
		next = page.Next
	}
	held.Next = ""
	return held, err
}
