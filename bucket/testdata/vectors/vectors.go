// SPDX-License-Identifier: Apache-2.0

// Package vectors holds the test vectors of the bucket arithmetic: complete histories of buckets with the
// answer to every step. The JSON files are independent of this implementation. README.md describes them.
package vectors

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
)

//go:embed *.json
var files embed.FS

// schema is the only file without cases.
const schema = "schema.json"

// A Case is one history: limits and the steps of their buckets.
type Case struct {
	File    string // such as "waits.json"
	Name    string // unique within its file
	Comment string // why the case exists

	// Core marks a case with amounts below 0. The arithmetic handles them; the callers of a store reject them.
	Core bool

	// Refused means that Specs[0] must not compile. Such a case has no steps.
	Refused bool

	Specs  []bucket.Spec  // one per bucket
	Limits []bucket.Limit // compiled, for their keys; empty if Refused
	Steps  []Step
}

// An Op is the operation of a [Step].
type Op string

// The operations of a store. Peek is a Take with DryRun, and Force a Take with a MaxWait of [bucket.Forced]. Refund
// is an admin refund, and Cancel refunds an earlier step.
const (
	Take   Op = "take"
	Peek   Op = "peek"
	Force  Op = "charge"
	Refund Op = "refund"
	Cancel Op = "cancel"
	Reset  Op = "reset"
)

// A Step is one operation at one instant on one or more buckets.
type Step struct {
	At      bucket.Instant
	Op      Op
	MaxWait time.Duration // the maximum wait of a take or a peek; [bucket.Forced] for a charge.
	Allowed bool          // for a take, a peek or a charge: whether all buckets admit.
	Charges []Charge      // in ascending order of Bucket
}

// A Charge is the part of one bucket in a step.
type Charge struct {
	Bucket int          // index into Case.Specs
	Spec   bucket.Spec  // the source of Limit
	Key    string       // the key of Limit, if the limit depends on it.
	Offset int64        // the start of its intervals: microseconds after the epoch.
	Starts []int64      // of a calendar limit: the starts of all windows in the case.
	Limit  bucket.Limit // active at this step.

	Penalty *bucket.Penalty // of the limit; may be nil

	Cost  bucket.Tokens // 0 in a reset
	Await time.Duration // of a take: the expected time until its cancellation, or 0: see [bucket.Row.WithAwait]
	Of    int           // for a cancel: the index of the canceled step; otherwise -1

	// Want is the expected answer to a take, a peek or a charge, and zero for other steps. WantPenalty and WantLevel are
	// the rest and the level of the penalty in this answer, or 0.
	Want        Want
	WantPenalty time.Duration
	WantLevel   int64
}

// A Want is the expected snapshot of one bucket.
type Want struct {
	Allowed    bool
	Remaining  bucket.Tokens
	RetryAfter time.Duration // [bucket.Never] for never
	FullAfter  time.Duration
	Wait       time.Duration
}

// Load returns all cases, file by file.
func Load() ([]Case, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("vectors: %w", err)
	}
	var cases []Case
	for _, e := range entries {
		if e.Name() == schema {
			continue
		}
		data, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, fmt.Errorf("vectors: %w", err)
		}
		more, err := parse(e.Name(), data)
		if err != nil {
			return nil, err
		}
		cases = append(cases, more...)
	}
	return cases, nil
}

func parse(file string, data []byte) ([]Case, error) {
	var raw []rawCase
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&raw); err != nil {
		return nil, fmt.Errorf("vectors: %s: %w", file, err)
	}
	cases := make([]Case, 0, len(raw))
	for _, r := range raw {
		c, err := r.build()
		if err != nil {
			return nil, fmt.Errorf("vectors: %s: %q: %w", file, r.Name, err)
		}
		c.File = file
		cases = append(cases, c)
	}
	return cases, nil
}
