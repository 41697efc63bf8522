// SPDX-License-Identifier: Apache-2.0

package vectors

import (
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
)

// rawCase and the types below mirror the JSON files.
type rawCase struct {
	Name    string     `json:"name"`
	Comment string     `json:"comment"`
	Core    bool       `json:"core"`
	Refused bool       `json:"refused"`
	Limit   *rawLimit  `json:"limit"`
	Limits  []rawLimit `json:"limits"`
	Steps   []rawStep  `json:"steps"`
}

type rawStep struct {
	At      int64     `json:"at"`
	Op      Op        `json:"op"`
	Limit   *rawLimit `json:"limit"`
	MaxWait int64     `json:"max_wait"`
	Await   int64     `json:"await"`
	Of      *int      `json:"of"`

	// For one bucket: the cost and, in a take or a peek, the answer.
	Cost int64 `json:"cost"`
	rawWant

	// For several buckets: one entry per bucket, null if it is not charged.
	Costs  []*int64   `json:"costs"`
	Expect []*rawWant `json:"expect"`
}

type rawWant struct {
	Allowed    bool   `json:"allowed"`
	Remaining  int64  `json:"remaining"`
	RetryAfter *int64 `json:"retry_after"`
	FullAfter  int64  `json:"full_after"`
	Wait       int64  `json:"wait"`
	Penalty    int64  `json:"penalty"`
	Level      int64  `json:"level"`
}

func (r rawCase) build() (Case, error) {
	c := Case{Name: r.Name, Comment: r.Comment, Core: r.Core, Refused: r.Refused}
	if r.Limit != nil {
		r.Limits = append(r.Limits, *r.Limit)
	}
	if len(r.Limits) == 0 {
		return Case{}, errors.New("no limit")
	}
	var now []Charge
	for i, raw := range r.Limits {
		spec, err := raw.spec()
		if r.Refused {
			c.Specs = append(c.Specs, spec)
			return c, nil // parsing or compiling may reject it: the test checks both
		}
		if err != nil {
			return Case{}, err
		}
		charge, err := raw.charge(spec)
		if err != nil {
			return Case{}, err
		}
		charge.Bucket = i
		c.Specs, c.Limits, now = append(c.Specs, spec), append(c.Limits, charge.Limit), append(now, charge)
	}
	for i, raw := range r.Steps {
		step, err := raw.build(now)
		if err != nil {
			return Case{}, fmt.Errorf("step %d: %w", i, err)
		}
		if step.Op == Cancel {
			for j := range step.Charges {
				if err := step.Charges[j].setCanceled(c.Steps); err != nil {
					return Case{}, fmt.Errorf("step %d: %w", i, err)
				}
			}
		}
		c.Steps = append(c.Steps, step)
	}
	return c, nil
}

// setCanceled gives c the limit of the take that it cancels.
func (c *Charge) setCanceled(steps []Step) error {
	if c.Of < 0 || c.Of >= len(steps) {
		return fmt.Errorf("canceled step %d is not an earlier step", c.Of)
	}
	for _, taken := range steps[c.Of].Charges {
		if taken.Bucket == c.Bucket {
			c.Penalty = taken.Penalty
			c.Spec, c.Key, c.Offset, c.Starts, c.Limit = taken.Spec, taken.Key, taken.Offset, taken.Starts, taken.Limit
			return nil
		}
	}
	return fmt.Errorf("step %d did not take from bucket %d", c.Of, c.Bucket)
}

// build returns the step. A changed limit stays in now for later steps.
func (r rawStep) build(now []Charge) (Step, error) {
	s := Step{At: bucket.Instant(r.At), Op: r.Op, MaxWait: micros(r.MaxWait), Allowed: r.Allowed}
	if r.Limit != nil {
		spec, err := r.Limit.spec()
		if err != nil {
			return Step{}, err
		}
		if now[0], err = r.Limit.charge(spec); err != nil {
			return Step{}, err
		}
	}
	if r.Op == Force {
		s.MaxWait = bucket.Forced
	}
	answers := r.Op == Take || r.Op == Peek || r.Op == Force
	if !answers && r.Op != Refund && r.Op != Cancel && r.Op != Reset {
		return Step{}, fmt.Errorf("unknown op %q", r.Op)
	}
	if (r.Op == Cancel) != (r.Of != nil) {
		return Step{}, errors.New("of: required for a cancel, and invalid for other operations")
	}
	if r.Costs == nil {
		r.Costs, r.Expect = []*int64{&r.Cost}, []*rawWant{&r.rawWant}
	}
	if len(r.Costs) != len(now) || answers && len(r.Expect) != len(now) {
		return Step{}, errors.New("costs and expect must have one entry per bucket")
	}
	for i, cost := range r.Costs {
		if cost == nil {
			continue
		}
		charge := now[i]
		charge.Cost, charge.Of, charge.Await = bucket.Tokens(*cost), -1, micros(r.Await)
		if r.Of != nil {
			charge.Of = *r.Of
		}
		if answers {
			if r.Expect[i] == nil {
				return Step{}, fmt.Errorf("no answer for bucket %d", i)
			}
			charge.Want, charge.WantPenalty, charge.WantLevel = r.Expect[i].want(), micros(r.Expect[i].Penalty), r.Expect[i].Level
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
