// SPDX-License-Identifier: Apache-2.0

package vectors

import (
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
)

// rawCase and the types below are the files as written.
type rawCase struct {
	Name    string     `json:"name"`
	Comment string     `json:"comment"`
	Core    bool       `json:"core"`
	Refused bool       `json:"refused"`
	Limit   *rawLimit  `json:"limit"`
	Limits  []rawLimit `json:"limits"`
	Steps   []rawStep  `json:"steps"`
}

type rawLimit struct {
	Capacity    string  `json:"capacity"`
	Rate        string  `json:"rate"`
	MaxReserved *string `json:"max_reserved"`
	N           int64   `json:"n"`
	P           int64   `json:"p"`
}

type rawStep struct {
	At      int64     `json:"at"`
	Op      Op        `json:"op"`
	Limit   *rawLimit `json:"limit"`
	MaxWait int64     `json:"max_wait"`

	// Of one bucket: the cost and, in a take or a peek, the answer.
	Cost int64 `json:"cost"`
	rawWant

	// Of several: one entry a bucket, null where it is not charged.
	Costs  []*int64   `json:"costs"`
	Expect []*rawWant `json:"expect"`
}

type rawWant struct {
	Allowed    bool   `json:"allowed"`
	Remaining  int64  `json:"remaining"`
	RetryAfter *int64 `json:"retry_after"`
	FullAfter  int64  `json:"full_after"`
	Wait       int64  `json:"wait"`
}

func (r rawCase) build() (Case, error) {
	c := Case{Name: r.Name, Comment: r.Comment, Core: r.Core, Refused: r.Refused}
	if r.Limit != nil {
		r.Limits = append(r.Limits, *r.Limit)
	}
	if len(r.Limits) == 0 {
		return Case{}, errors.New("no limit")
	}
	for _, raw := range r.Limits {
		spec, err := raw.spec()
		if r.Refused {
			c.Specs = append(c.Specs, spec)
			return c, nil // whether parsing or compiling refuses it is the test's to see
		}
		if err != nil {
			return Case{}, err
		}
		limit, err := raw.compile(spec)
		if err != nil {
			return Case{}, err
		}
		c.Specs, c.Limits = append(c.Specs, spec), append(c.Limits, limit)
	}
	now := charges(c.Specs, c.Limits)
	for i, raw := range r.Steps {
		step, err := raw.build(now)
		if err != nil {
			return Case{}, fmt.Errorf("step %d: %w", i, err)
		}
		c.Steps = append(c.Steps, step)
	}
	return c, nil
}

func charges(specs []bucket.Spec, limits []bucket.Limit) []Charge {
	list := make([]Charge, len(limits))
	for i := range limits {
		list[i] = Charge{Bucket: i, Spec: specs[i], Limit: limits[i]}
	}
	return list
}

// build returns the step. A changed limit stays in now for the steps after it.
func (r rawStep) build(now []Charge) (Step, error) {
	s := Step{At: bucket.Instant(r.At), Op: r.Op, MaxWait: micros(r.MaxWait), Allowed: r.Allowed}
	if r.Limit != nil {
		spec, err := r.Limit.spec()
		if err != nil {
			return Step{}, err
		}
		limit, err := r.Limit.compile(spec)
		if err != nil {
			return Step{}, err
		}
		now[0].Spec, now[0].Limit = spec, limit
	}
	answers := r.Op == Take || r.Op == Peek
	if !answers && r.Op != Refund && r.Op != Reset {
		return Step{}, fmt.Errorf("unknown op %q", r.Op)
	}
	if r.Costs == nil {
		r.Costs, r.Expect = []*int64{&r.Cost}, []*rawWant{&r.rawWant}
	}
	if len(r.Costs) != len(now) || answers && len(r.Expect) != len(now) {
		return Step{}, errors.New("costs and expect must have one entry a bucket")
	}
	for i, cost := range r.Costs {
		if cost == nil {
			continue
		}
		charge := now[i]
		charge.Cost = bucket.Tokens(*cost)
		if answers {
			if r.Expect[i] == nil {
				return Step{}, fmt.Errorf("no answer for bucket %d", i)
			}
			charge.Want = r.Expect[i].want()
		}
		s.Charges = append(s.Charges, charge)
	}
	return s, nil
}

func (r rawWant) want() Want {
	w := Want{
		Allowed: r.Allowed, Remaining: bucket.Tokens(r.Remaining), RetryAfter: bucket.Never,
		FullAfter: micros(r.FullAfter), Wait: micros(r.Wait),
	}
	if r.RetryAfter != nil {
		w.RetryAfter = micros(*r.RetryAfter)
	}
	return w
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
