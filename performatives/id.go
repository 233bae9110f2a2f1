package performatives

import "errors"

// MaxID is the longest proposalId, commitmentId or queryId, in bytes.
const MaxID = 128

// A SessionID names a session: a UUIDv7 in its canonical lower-case form, made
// by whoever invites.
type SessionID string

// A MessageID names a message: a UUIDv7 in its canonical lower-case form, made
// by whoever submits it.
type MessageID string

var errUUID = errors.New("want a UUIDv7 in lower case, such as 019478a3-7b2c-7def-8a12-3456789abcde")

// ParseSessionID reads a session's id.
func ParseSessionID(s string) (SessionID, error) {
	if !isUUIDv7(s) {
		return "", errUUID
	}
	return SessionID(s), nil
}

// ParseMessageID reads a message's id.
func ParseMessageID(s string) (MessageID, error) {
	if !isUUIDv7(s) {
		return "", errUUID
	}
	return MessageID(s), nil
}

// isUUIDv7 insists on one spelling: an id is compared as bytes and is a subject token.
func isUUIDv7(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if unhex(c) < 0 {
				return false
			}
		}
	}
	return s[14] == '7' && (s[19] == '8' || s[19] == '9' || s[19] == 'a' || s[19] == 'b')
}

// ValidID reports whether s may be a proposalId, commitmentId or queryId.
func ValidID(s string) bool { return s != "" && len(s) <= MaxID }
