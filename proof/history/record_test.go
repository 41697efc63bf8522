// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

type kind string

const (
	take      kind = "take"
	peek      kind = "peek"
	force     kind = "force"
	renewSlot kind = "renew slot"
	refund    kind = "refund"  // by an admin
	cancel    kind = "cancel"  // of an earlier take
	release   kind = "release" // of slots
	reset     kind = "reset"
	hold      kind = "hold"
	settle    kind = "settle"
	renewHold kind = "renew hold"

	tick kind = "tick" // the clock steps ahead
	wipe kind = "wipe" // the store crashes, and everything is full
	lose kind = "lose" // a failover, which may lose the last writes
	undo kind = "undo" // of a take of several slots
)

// An op is an operation of a history: an invocation and its return, in nanoseconds since the start.
type op struct {
	Client  int      `json:"client"`
	Kind    kind     `json:"op"`
	Charges []charge `json:"charges,omitempty"`
	UpTo    bool     `json:"up_to,omitempty"`
	ID      string   `json:"id,omitempty"`
	Hold    string   `json:"hold,omitempty"`
	Amount  int64    `json:"amount,omitempty"` // of a settlement, or of a tick
	TTL     int64    `json:"ttl,omitempty"`    // of a hold
	Refund  bool     `json:"refund,omitempty"` // at the expiry of a hold
	Call    int64    `json:"call"`
	Return  int64    `json:"return"`
	Answer  answer   `json:"answer"`

	again bool // its client makes it again
}

// isSilent reports whether the answer shows no amount, so that only later operations show the effect.
func (o *op) isSilent() bool {
	return slices.Contains([]kind{refund, cancel, release, reset, settle}, o.Kind)
}

// A charge is a cost for a key under a version of its limit. Slot, Fixed and Kept are for slots and holds.
type charge struct {
	Key     string `json:"key"`
	Version int    `json:"version"`
	Cost    int64  `json:"cost,omitempty"`
	Slot    string `json:"slot,omitempty"`
	Fixed   int64  `json:"fixed,omitempty"`
	Kept    bool   `json:"kept,omitempty"`
}

// An answer is the answer of a store. With Unknown, the store returned an error that does not exclude an effect: the
// operation happened at any later time, or never.
type answer struct {
	Unknown bool   `json:"unknown,omitempty"`
	Undone  bool   `json:"-"` // an unknown operation that is over
	Allowed bool   `json:"allowed,omitempty"`
	Snaps   []snap `json:"snaps,omitempty"`
	Status  string `json:"status,omitempty"` // of a hold
	Settled bool   `json:"settled,omitempty"`
	Actual  int64  `json:"actual,omitempty"`
	Err     string `json:"err,omitempty"`
}

// A snap is the snapshot of a charge.
type snap struct {
	Allowed bool  `json:"allowed"`
	Cost    int64 `json:"cost"`
	Missing int64 `json:"missing"`
}

func (o *op) String() string {
	in, out := *o, o.Answer
	in.Answer = answer{}
	a, _ := json.Marshal(in)
	b, _ := json.Marshal(out)
	return fmt.Sprintf("%s -> %s", a, b)
}

// A history is the record of one run. Its file has a header line, and a line for each operation.
type history struct {
	Title  string   `json:"title"` // the world and the faults
	Seed   uint64   `json:"seed"`
	Limits []limit  `json:"limits"`          // by version
	Parts  []string `json:"parts,omitempty"` // keys in different slots of a cluster: see checkParts
	Quiet  int64    `json:"quiet,omitempty"` // the store has then returned the costs of all denied takes
	ops    []*op
	part   bool // of one key
}

func (h *history) write(w io.Writer) error {
	out := json.NewEncoder(w)
	if err := out.Encode(h); err != nil {
		return err
	}
	for _, o := range h.ops {
		if err := out.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) save(path string) error {
	var b strings.Builder
	if err := h.write(&b); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func readHistory(path string) (*history, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := json.NewDecoder(bufio.NewReader(f))
	h := new(history)
	if err := in.Decode(h); err != nil {
		return nil, fmt.Errorf("%s: header: %w", path, err)
	}
	for {
		o := new(op)
		if err := in.Decode(o); err == io.EOF {
			return h, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: operation %d: %w", path, len(h.ops)+1, err)
		}
		h.ops = append(h.ops, o)
	}
}
