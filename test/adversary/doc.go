// Package adversary attacks a broker with logins, as docs/SECURITY.md lists the
// threats: one test for each row of its table. Every attack is made by a plain
// NATS or HTTP client with the credentials of whoever makes it, against a real broker.
//
// An attack must be refused, with the right code, and must leave no trace: what
// the streams and the inboxes hold is the same before and after, byte for byte.
// The tests look at that with the broker's own key, which no attacker has.
package adversary
