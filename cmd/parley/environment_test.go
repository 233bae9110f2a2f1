package main

import (
	"slices"
	"testing"
)

// A misspelt variable is told of; those of other commands, of the SDKs and of Kubernetes are not.
func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	misspelt := []string{"PARLEY_LISTEM=0.0.0.0:4222", "PARLEY_LIMIT_MESAGES=5", "PARLEY_"}
	unknown := unknownVariables(rootCommand(), append([]string{
		"HOME=/", "PARLEYS=1", "PARLEY_LISTEN=x", "PARLEY_JSON=true", "PARLEY_CONFIG=x", "PARLEY_TOKEN=x", "PARLEY_EMBEDDINGS_KEY=x", "PARLEY_SEED=x",
		"PARLEY_SERVICE_HOST=10.0.0.1", "PARLEY_SERVICE_PORT=4222", "PARLEY_SERVICE_PORT_NATS=4222", "PARLEY_PORT=tcp://10.0.0.1:4222",
		"PARLEY_PORT_4222_TCP=tcp://10.0.0.1:4222", "PARLEY_PORT_4222_TCP_ADDR=10.0.0.1", "PARLEY_NATS_SERVICE_HOST=10.0.0.2",
	}, misspelt...))
	if want := []string{"PARLEY_LISTEM", "PARLEY_LIMIT_MESAGES", "PARLEY_"}; !slices.Equal(unknown, want) {
		t.Errorf("unknown are %v, want %v", unknown, want)
	}
}
