// Package conformance holds what a plain NATS client sees of a broker: the
// conversations of testdata, and tests of what does not fit into a text.
// Nothing on the client's side of them is code of ours: envelopes are raw JSON,
// inboxes are read through their durable pull consumers. The conversations run
// over HTTP too, and are answered the same: envelopes are posted, verbs are
// called by their paths, inboxes are read from /inbox/events.
//
// A conversation is a text that a person reads and another program can run:
//
//	# a remark
//	== title                     a new session, ${session}
//	> alpha PROPOSE {…}          alpha submits a body; the line below is the answer
//	> beta ACCEPT {…} + {…}      … with members of the envelope set, or null to leave out
//	> beta again m2              the very bytes of message ${m2}
//	? alpha session.get {…}      an api call
//	inbox beta                   what lies in beta's inbox of this session, acknowledged
//	inbox beta whole             … as it was delivered
//	item                         what came on asp.escalation.> since it was asked last
//	event closed                 wait for this event
//	events                       the kinds of events since they were asked last
//	restart                      the broker stops and starts again
//
// Answers are JSON with sorted keys; a refusal has its micro error code before
// it. What differs from run to run has a name instead: ${m1} is the id of the
// first message submitted, ${hash0} the hash of the entry 0, ${session} the
// session, ${broker} the broker's key, ${time} any time, ${signature} any
// signature. The same names stand in what is sent; ${new} is a fresh UUIDv7 and
// ${soon:2500} a time 2.5 s from now.
package conformance
