// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

func (s *subject) assertTaken(mode mete.Mode, charges []store.Charge, wantAllowed bool, want ...bucket.Tokens) {
	s.Helper()
	snaps, allowed := s.take(mode, charges...)
	if allowed != wantAllowed {
		s.Errorf("%+v: allowed %v, want %v", mode, allowed, wantAllowed)
	}
	for i, snap := range snaps {
		if snap.Cost != want[i] {
			s.Errorf("%+v: took %v of bucket %q, want %v", mode, snap.Cost, charges[i].Key, want[i])
		}
	}
}

func checkUpTo(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1s")
	four := []store.Charge{{Key: "k", Limit: l, Cost: 4 * bucket.Token}}
	upTo, look := mete.Mode{UpTo: true}, mete.Mode{UpTo: true, DryRun: true}
	s.assertTaken(upTo, four, true, 4*bucket.Token)
	s.assertTaken(upTo, four, true, 4*bucket.Token)
	s.assertTaken(look, four, true, 2*bucket.Token)
	s.assertTaken(upTo, four, true, 2*bucket.Token)
	s.assertTaken(upTo, four, false, bucket.Token)
	s.assertRemaining("k", l, 0)

	s.clock.Advance(2_999_999) // whole tokens
	s.assertTaken(upTo, four, true, 2*bucket.Token)
	s.assertRemaining("k", l, 999)
	s.assertTaken(upTo, []store.Charge{{Key: "k", Limit: l, Cost: 700}}, true, 700)
	s.assertTaken(upTo, []store.Charge{{Key: "k", Limit: l, Cost: 700}}, false, 700)
}

func checkUpToOfSeveral(t *testing.T, open Open) {
	s, big, small := newSubject(t, open), limit(t, 100*bucket.Token, "1/1h"), limit(t, 3*bucket.Token, "1/1h")
	charges := []store.Charge{
		{Key: "a", Limit: big, Cost: 10 * bucket.Token},
		{Key: "b", Limit: small, Cost: 10 * bucket.Token},
		{Key: "c", Limit: big, Cost: 2 * bucket.Token},
	}
	s.assertTaken(mete.Mode{UpTo: true}, charges, true, 3*bucket.Token, 3*bucket.Token, 2*bucket.Token)
	s.assertTaken(mete.Mode{UpTo: true}, charges, false, bucket.Token, bucket.Token, bucket.Token)
	s.assertRemaining("a", big, 97*bucket.Token)
	s.assertRemaining("b", small, 0)
	s.assertRemaining("c", big, 98*bucket.Token)
}
