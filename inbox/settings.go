package inbox

import (
	"net/http"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// settings is the page of the reader's own keys and preferences. The preferences stay
// in the browser.
type settings struct {
	Me      *person
	Own     performatives.Key // logs in to NATS; "" if the human has none
	Devices []api.Device
	Feeds   []api.Token // of a calendar, without their secrets
	Decides bool        // the reader may be away
	Others  []api.Card  // colleagues who may decide
}

func (i *Inbox) settings(r *http.Request, who *person) (*settings, error) {
	card, err := i.card(r.Context(), who.Agent)
	if err != nil {
		return nil, err
	}
	v := &settings{Me: who, Own: card.Key, Devices: card.Registry.Devices, Feeds: i.Service.Custody.Feeds(who.Agent), Decides: card.Registry.MayDecide || i.Dev}
	if !v.Decides {
		return v, nil
	}
	colleagues, err := i.colleagues(r.Context(), who)
	for _, c := range colleagues {
		if c.Registry.MayDecide || i.Dev {
			v.Others = append(v.Others, c)
		}
	}
	return v, err
}

// revokes is the purpose of the proof that revokes a key: a cookie alone cannot do it.
func revokes(key performatives.Key) string { return "parley inbox: revoke " + string(key) }

// proves checks that a human's request was signed for a purpose by the key of the browser that sends it.
func (i *Inbox) proves(r *http.Request, who *person, p proof, purpose string) error {
	if i.Dev && who.Key == "" {
		return nil
	}
	key, err := i.key(p, r.Header.Get("Origin"), purpose)
	if err == nil && key != who.Key {
		err = errProof
	}
	return err
}

// unenrol revokes the key of one of the reader's browsers. The reader's own key signs
// the request, and signs out if it is the one that is revoked.
func (i *Inbox) unenrol(w http.ResponseWriter, r *http.Request, who *person) {
	var q struct {
		proof
		Revoke performatives.Key `json:"revoke"`
	}
	if !i.read(w, r, &q) {
		return
	}
	if err := i.proves(r, who, q.proof, revokes(q.Revoke)); err != nil {
		i.fails(w, r, "", err)
		return
	}
	if _, err := ask(r.Context(), i, who.Agent, api.HumanUnenrol, api.DeviceRef{Key: q.Revoke}); err != nil {
		i.answer(w, r, nil, err)
		return
	}
	if q.Revoke == who.Key {
		i.logout(w, r)
		return
	}
	i.answer(w, r, map[string]bool{"signedIn": true}, nil)
}
