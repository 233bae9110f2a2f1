package api

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The status of an agent's availability.
const (
	Online  = "online"
	Offline = "offline"
)

// Availability is what a card says of when its agent is there, with what the registry adds:
// its status, and lastSeen where it is offline and was seen before. What is no object is
// under "stated".
func Availability(own jsontext.Value, online bool, last time.Time) jsontext.Value {
	said := ownMembers(own)
	said["status"] = quoted(Offline)
	switch {
	case online:
		said["status"] = quoted(Online)
	case !last.IsZero():
		said["lastSeen"] = quoted(last.UTC().Format(time.RFC3339))
	}
	return objectOf(said)
}

// OwnAvailability is an availability without what only the registry says.
func OwnAvailability(said jsontext.Value) jsontext.Value {
	if said.Kind() != '{' {
		return said
	}
	return objectOf(ownMembers(said))
}

// Available reads whether an agent is online, and when it was last seen, from a card as the
// registry shows it.
func (c Card) Available() (online bool, lastSeen time.Time) {
	var is struct {
		Status   string    `json:"status"`
		LastSeen time.Time `json:"lastSeen"`
	}
	if json.Unmarshal(c.Availability, &is) != nil {
		return false, time.Time{}
	}
	return is.Status == Online, is.LastSeen
}

func ownMembers(availability jsontext.Value) map[string]jsontext.Value {
	said := map[string]jsontext.Value{}
	switch {
	case availability.Kind() == '{' && json.Unmarshal(availability, &said) != nil:
		return map[string]jsontext.Value{}
	case availability.Kind() != '{' && len(availability) > 0:
		said["stated"] = availability
	}
	delete(said, "status")
	delete(said, "lastSeen")
	return said
}

func objectOf(members map[string]jsontext.Value) jsontext.Value {
	data, err := json.Marshal(members, json.Deterministic(true))
	if err != nil || len(members) == 0 {
		return nil
	}
	return data
}

func quoted(s string) jsontext.Value { return jsontext.Value(strconv.Quote(s)) }
