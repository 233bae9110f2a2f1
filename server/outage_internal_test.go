package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// The log says once that no act can be accepted, and for how long, when acts are again.
func TestLogOutages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		found, away := make(chan error), errors.New("no store")
		ctx, stop := context.WithCancel(t.Context())
		go logOutages(ctx, func(context.Context) error { return <-found }, zap.New(core))
		for _, err := range []error{nil, away, away, nil, nil} {
			found <- err
		}
		synctest.Wait()
		stop()
		all := logs.All()
		if len(all) != 2 || all[0].Message != "no act can be accepted" || all[1].Message != "acts are accepted again" || all[1].ContextMap()["after"] != 2*outageEvery {
			t.Errorf("the log has %+v", all)
		}
	})
}
