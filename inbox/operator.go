package inbox

import (
	"net/http"
	"strconv"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
)

// installation is the page of an operator, who is no party: nothing of a deal is on it.
type installation struct {
	api.Status
	Figures [][2]string // of the activity
	Now     time.Time
}

func (i *Inbox) operator(r *http.Request, who *person) (*installation, error) {
	status, err := ask(r.Context(), i, who.Agent, api.BrokerStatus, struct{}{})
	page := &installation{Status: status, Now: i.Now()}
	if status.Activity != nil {
		page.Figures = render.Figures(*status.Activity)
	}
	return page, err
}

// size formats a number of bytes.
func size(n uint64) string {
	for _, unit := range []struct {
		bytes uint64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			return strconv.FormatFloat(float64(n)/float64(unit.bytes), 'f', 1, 64) + " " + unit.name
		}
	}
	return strconv.FormatUint(n, 10) + " B"
}
