package broker

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
)

// Notified notes who was told of an item, and how: it is part of what happened
// around it, and changes nothing for who decides.
func (b *Broker) Notified(ctx context.Context, item *api.EscalationItem, told string) error {
	_, err := b.desks.change(ctx, item.Organisation, item.ID, func(escalation.Desk) (escalation.Event, error) {
		return escalation.Event{Kind: escalation.Notified, At: b.Now().UTC(), Text: clip(told, maxComment)}, nil
	})
	return err
}

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}
