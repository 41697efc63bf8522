// SPDX-License-Identifier: Apache-2.0

// Package vectors holds the test vectors of the bucket arithmetic: whole
// histories of a bucket with the answer to every step. The JSON files beside it
// belong to the format, not to this implementation; README.md explains them.
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

// schema is the one file here that holds no cases.
const schema = "schema.json"

// A Case is one history: limits, and what happens to their buckets.
type Case struct {
	File    string // such as "waits.json"
	Name    string // distinct within its file
	Comment string // why the case exists

	// Core marks a case with amounts below 0. The arithmetic answers them; a
	// store is never asked, because its callers refuse them.
	Core bool

	// Refused says that Specs[0] must not compile. Such a case has no steps.
	Refused bool

	Specs  []bucket.Spec  // one for each bucket
	Limits []bucket.Limit // compiled, for their keys; empty where Refused
	Steps  []Step
}

// An Op says what a [Step] does.
type Op string

// The operations: a store's Take, its Take with DryRun, its Take with a MaxWait of
// [bucket.Forced], its Refund by an
// administrator, the Refund that cancels an earlier step, its Reset.
const (
	Take   Op = "take"
	Peek   Op = "peek"
	Force  Op = "charge"
	Refund Op = "refund"
	Cancel Op = "cancel"
	Reset  Op = "reset"
)

// A Step is one operation at one instant, on one or more of the buckets.
type Step struct {
	At      bucket.Instant
	Op      Op
	MaxWait time.Duration // of a take or a peek: how long the work may wait; of a charge [bucket.Forced]
	Allowed bool          // of a take, a peek or a charge: whether all of it is admitted
	Charges []Charge      // in ascending order of Bucket
}

// A Charge is one bucket's part in a step.
type Charge struct {
	Bucket int           // index into Case.Specs
	Spec   bucket.Spec   // what Limit was compiled from
	Key    string        // what Limit holds for, where it makes a difference
	Offset int64         // where its intervals begin: microseconds after the epoch
	Limit  bucket.Limit  // in force at this step
	Cost   bucket.Tokens // 0 in a reset
	Of     int           // of a cancel: the index of the step that took; -1 elsewhere

	// Want is the answer to a take, a peek or a charge. It is zero in the other steps.
	Want Want
}

// A Want is what the snapshot of one bucket has to show.
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
