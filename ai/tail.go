// SPDX-License-Identifier: Apache-2.0

package ai

import "fmt"

// A Tail checks the rest of a body that is longer than [MaxRequestBytes], while it passes. Its memory is constant. The body must
// be valid JSON. No member that a request is charged by may be in the rest, because the charge does not have it.
// No known member may occur twice.
//
// Only stream and stream_options may be in the rest: the response shows whether it is a stream.
type Tail struct {
	walker   walker
	check    validator
	read     int64
	numbers  uint32 // the numbers that the beginning has
	hasModel bool   // the beginning or the path has it
	err      *Error
}

// Check checks the next bytes of the body, which follow the first [MaxRequestBytes]. Do not pass them on if it returns an error:
// the server must not get the whole body. The error is an [Error], and returned again for all further bytes.
func (t *Tail) Check(p []byte) error {
	if t.err == nil {
		t.feed(p)
	}
	if t.err == nil {
		t.err = t.findLate()
	}
	return t.result()
}

// End returns an error if the body is incomplete or invalid at its end.
func (t *Tail) End() error {
	if t.err == nil && !t.check.complete() {
		t.err = newJSONError(t.read, t.read)
	}
	return t.result()
}

func (t *Tail) result() error {
	if t.err != nil {
		return t.err
	}
	return nil // without a type
}

func (t *Tail) feed(p []byte) {
	if at := t.check.feed(p); at >= 0 {
		t.err = newJSONError(t.read+int64(at), t.read+int64(len(p)))
		return
	}
	t.read += int64(len(p))
	t.walker.feed(p)
	t.err = t.walker.requestError()
}

// findLate returns an error for a member that the beginning did not have.
func (t *Tail) findLate() *Error {
	f := &t.walker.facts
	name := ""
	if !t.hasModel && f.model.length > 0 {
		name = "model"
	}
	for n := fMaxTokens; n <= fBestOf; n++ {
		if f.reported.seen&^t.numbers&(1<<n) != 0 {
			name = numberNames[n]
		}
	}
	if name == "" {
		return nil
	}
	return &Error{InvalidMember, fmt.Sprintf("%s is behind the first %d bytes of the body: write it before the messages", name, MaxRequestBytes)}
}
