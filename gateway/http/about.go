package httpgateway

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// about is what a client reads before it logs in.
type about struct {
	Name      string            `json:"name"`
	Version   string            `json:"version"`
	Protocols []string          `json:"protocols"`
	Contract  int               `json:"contract"` // api.Contract
	Format    int               `json:"format"`   // of transcripts, the newest
	Broker    performatives.Key `json:"broker"`
	Now       string            `json:"now"`
	Dev       bool              `json:"dev,omitzero"`
}

func (c *call) about() {
	data, err := json.Marshal(about{
		Name: "parley", Version: api.Version, Protocols: []string{performatives.Version}, Contract: api.Contract, Format: performatives.Format,
		Broker: c.g.key, Now: api.Timestamp(c.g.service.Now()), Dev: c.g.service.Dev,
	}, json.Deterministic(true))
	if err != nil {
		c.refuse(err)
		return
	}
	write(c.w, http.StatusOK, jsonType, data)
}
