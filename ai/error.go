// SPDX-License-Identifier: Apache-2.0

package ai

// An Error describes a request or a response that cannot be read.
type Error struct {
	Kind   Kind
	Detail string // the place, the value and the remedy
}

// A Kind is the cause of an [Error].
type Kind uint8

// The causes. The first two concern requests, the others responses.
const (
	InvalidJSON     Kind = iota + 1 // the request is no JSON object
	InvalidMember                   // a member of the request has a wrong type or value, or occurs twice
	InvalidUsage                    // the usage is negative, no integer, or above MaxUsage: it counts as no usage
	UnknownEncoding                 // the body is compressed by another coding than gzip: the reader only counts bytes
	InvalidEncoding                 // the gzip data is broken
	InvalidFrame                    // a frame of the event stream is broken: the reader ignores the rest
)

var kindNames = [...]string{"error", "invalid JSON", "invalid member", "invalid usage", "unknown encoding", "invalid encoding", "invalid frame"}

// String returns the cause in words.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[0]
}

func (e *Error) Error() string { return "ai: " + e.Kind.String() + ": " + e.Detail }
