package httpgateway_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// Before it logs in, a client learns whether it speaks with the broker, and what time it is there.
func TestAbout(t *testing.T) {
	t.Parallel()
	clock := testkit.StoppedClock(time.Now().Add(10 * time.Minute))
	w := testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0", Now: clock.Now})
	info, err := w.OperatorClient().Broker(w.Ctx)
	testkit.Must(t, err)
	var said map[string]any
	w.Send("GET", "/v1/asp", "", "").Is(http.StatusOK, &said)
	want := map[string]any{
		"name": "parley", "version": api.Version, "protocols": []any{performatives.Version}, "contract": float64(api.Contract), "format": float64(performatives.Format),
		"broker": string(info.Key), "now": api.Timestamp(clock.Now()),
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
	if info.Now != want["now"] {
		t.Errorf("broker.info says %s, want %s", info.Now, want["now"])
	}
}
