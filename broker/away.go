package broker

import "time"

const (
	missedAfter = 2500 * time.Millisecond // sooner than others take this broker for gone
	catchingUp  = time.Second             // for reading what came while it was away
)

// renewed notes that the record, as it was sent at a time, is there.
func (p *presence) renewed(sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.acked.IsZero() && time.Since(p.acked) > missedAfter {
		p.back = time.Now().Add(catchingUp)
	}
	p.acked = sent
}

// gone tells whether another broker has been silent for too long. Where records could not
// be written for a while, by this one too, the others have not been heard since for
// no fault of theirs: they have as long again.
func (p *presence) gone(o another) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Now().Sub(o.at) > silentAfter && time.Since(p.back) > silentAfter
}

// away tells whether this broker has stood still, or was cut off, for so long that others
// may have taken it for gone. Acts that came to it may have been sent again and refused
// by another since then: to hear them now would take that back.
func (p *presence) away() bool {
	if p.b.Alone {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return now.Sub(p.acked) > missedAfter || now.Before(p.back)
}
