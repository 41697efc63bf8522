// SPDX-License-Identifier: Apache-2.0

package denial_test

import (
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/denial"
	"github.com/metehq/mete/policy"
)

func status(rule *policy.Rule, retry time.Duration) mete.Status {
	s := mete.Status{Rule: rule}
	s.Allowed, s.RetryAfter = retry == 0, retry
	return s
}

func TestWorst(t *testing.T) {
	for want, statuses := range map[int][]mete.Status{
		-1: {status(nil, 0)},
		0:  {status(nil, 2), status(nil, 2), status(nil, 1)},
		2:  {status(nil, 0), status(nil, 1), status(nil, 3)},
	} {
		if got := denial.Worst(statuses); got != want {
			t.Errorf("%+v: got %d, want %d", statuses, got, want)
		}
	}
}

func TestEachShadow(t *testing.T) {
	a, b, c := &policy.Rule{Name: "a"}, &policy.Rule{Name: "b"}, &policy.Rule{Name: "c"}
	d := &mete.Denial{Decision: mete.Decision{Shadow: []mete.Status{status(a, 1), status(a, 3), status(b, 0), status(c, 0), status(c, 5), status(c, 4)}}}
	var got []int
	denial.EachShadow(d, func(at int) { got = append(got, at) })
	if want := []int{1, 4}; !slices.Equal(got, want) {
		t.Errorf("got %d, want %d", got, want)
	}
}
