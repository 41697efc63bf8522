// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"fmt"
	"math/bits"

	"github.com/metehq/mete/bucket"
)

// A partNumber is the index of a part plus 1, or 0 for none.
type partNumber uint8

// HasPart reports whether the limit applies to the i-th of [Request.Parts]. It is false for every i if the request
// has no parts, and for a limit of one of its Charges.
func (s *Status) HasPart(i int) bool { return i >= 0 && i < MaxParts && s.parts>>i&1 == 1 }

func (s *Status) firstPart() partNumber {
	if s.parts == 0 {
		return 0
	}
	return partNumber(bits.TrailingZeros64(s.parts) + 1)
}

// Part returns the index of the part that decided, in [Request.Parts]: the part of [Decision.Decider], or the part
// that the policy denied without a limit. If several parts share the limit, it is the first of them. It is -1 if the
// request has no parts, if no limit applied to them, or if one of the request's Charges decided.
func (d *Decision) Part() int {
	if s := d.Decider(); s != nil {
		return int(s.firstPart()) - 1
	}
	return int(d.denied) - 1
}

// nearPart returns the first part that is near its limit, or -1.
func (d *Decision) nearPart() int {
	limits := d.Limits()
	for i := range limits {
		if limits[i].Near() {
			return int(limits[i].firstPart()) - 1
		}
	}
	return -1
}

// checkParts validates the request's parts. Their costs are valid if it returns nil.
func (r *Request) checkParts() error {
	if len(r.Parts) > MaxParts {
		return fmt.Errorf("%w: %d parts: must be at most %d", ErrRequest, len(r.Parts), MaxParts)
	}
	if r.Attributes != nil || r.Cost != 0 {
		return fmt.Errorf("%w: a request with parts has no attributes and no cost of its own: set them for each part", ErrRequest)
	}
	for i := range r.Parts {
		p := &r.Parts[i]
		if _, ok := p.Cost.count(); !ok {
			return fmt.Errorf("%w: part %d: %v tokens: must be a multiple of 0.001 between 0 (the rule's own) and %v", ErrCost, i, p.Cost, bucket.MaxTokens)
		}
		if p.Look && p.Cost != 0 {
			return fmt.Errorf("%w: part %d: looks and has a cost: set only one of the two", ErrRequest, i)
		}
	}
	return nil
}
