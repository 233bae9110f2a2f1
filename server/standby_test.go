package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// seeds/index-network-negotiation.txt, GATEWAYS.md G3: without configuration the installation's
// standby takes a turn that a personal agent leaves waiting, before the 24 h clock ends the deal.
func TestStandbyBeforeTheClock(t *testing.T) {
	t.Parallel()
	policy, err := negotiator.Default()
	testkit.Must(t, err)
	clock := &testkit.Clock{}
	w := testkit.NewHosted(t, testkit.Options{Standby: policy, Now: clock.Now})
	path := testkit.SessionPath(w.Match())
	view := func() (v struct {
		Status    string          `json:"status"`
		Proposals []api.OfferView `json:"proposals"`
		Parties   []api.PartyView `json:"participants"`
	}) {
		w.Send("GET", path, w.Tokens[testkit.Cron], "").Is(http.StatusOK, &v)
		return v
	}
	w.Send("POST", path+"/messages", w.Tokens[testkit.Cron], fmt.Sprintf(`{"performative":"PROPOSE","body":{"proposalId":"p1","type":"opportunity","subject":"s",
		"terms":{"topic":"boats"},%s}}`, `"assessment":{"reasoning":"both build boats","suggestedRoles":{"ownUser":"agent","otherUser":"patient"}}`)).Is(http.StatusOK, nil)
	standby := api.StandbyOf(testkit.Seller.Organisation())
	if parties := view().Parties; len(parties) != 4 || parties[3].Agent != standby || parties[3].Role != "standby" || parties[3].Custody != performatives.Hosted {
		t.Errorf("the participants are %+v", parties)
	}
	clock.Advance(17 * time.Hour)
	early := w.Send("POST", path+"/messages", w.Token(api.AddToken{Agent: standby}), `{"performative":"ACCEPT","body":{"referenceId":"p1",`+testkit.Assessed+`}}`)
	early.Refused(http.StatusForbidden, session.AuthorityExceeded)
	if v := view(); v.Status != "negotiating" {
		t.Errorf("after 17 h it is %s", v.Status)
	}
	clock.Advance(time.Hour)
	testkit.Eventually(t, "the standby takes the turn", func() bool { return view().Status == "pending" })

	// What has numbers it does not judge: there is no mandate, and nobody to ask.
	path = testkit.SessionPath(w.Match())
	w.Send("POST", path+"/messages", w.Tokens[testkit.Cron], `{"performative":"PROPOSE","body":{"proposalId":"p1","type":"x","subject":"s","terms":{"price":5},`+testkit.Assessed+`}}`).Is(http.StatusOK, nil)
	clock.Advance(18 * time.Hour)
	testkit.Eventually(t, "the standby rejects a price", func() bool { return view().Status == "rejected" })
}

// Without --standby nobody stands in for who names nobody.
func TestNoStandby(t *testing.T) {
	t.Parallel()
	w := testkit.NewHosted(t, testkit.Options{})
	var v struct {
		Parties []api.PartyView `json:"participants"`
	}
	if w.Send("GET", testkit.SessionPath(w.Match()), w.Tokens[testkit.Cron], "").Is(http.StatusOK, &v); len(v.Parties) != 2 {
		t.Errorf("the participants are %+v", v.Parties)
	}
}
