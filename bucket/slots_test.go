// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
)

func mustSlots(t testing.TB, most int, lease time.Duration) bucket.Limit {
	t.Helper()
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmConcurrency, Rate: bucket.Rate{Tokens: bucket.Tokens(most) * bucket.Token, Per: lease}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSlots_AgreeWithACount compares random histories with a list of ends. At no instant are more than the most slots held,
// and a denied take is admitted exactly when its wait is over.
func TestSlots_AgreeWithACount(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(testseed.PCG(seed, 21))
		var s bucket.Slots
		ends, now := map[bucket.SlotID]bucket.Instant{}, bucket.Instant(1_000_000)
		l := mustSlots(t, 1+r.IntN(4), time.Duration(1+r.IntN(5))*time.Millisecond)
		for range 200 {
			now += bucket.Instant(r.IntN(1500))
			held := 0
			for _, end := range ends {
				if end > now {
					held++
				}
			}
			id := bucket.SlotID{1, byte(r.IntN(6))}
			mine := ends[id] > now
			switch r.IntN(4) {
			case 0:
				s.Release(id)
				delete(ends, id)
				continue
			case 1:
				if v := s.Renew(&l, id, now); v.Allowed() != mine {
					t.Fatalf("seed %d: renewed %v, held %v", seed, v.Allowed(), mine)
				}
			default:
				want := mine || held < int(l.Capacity()/bucket.Token)
				v := s.Take(&l, id, now, bucket.Token)
				if v.Allowed() != want {
					t.Fatalf("seed %d at %d: took %v with %d of %v held", seed, now, v.Allowed(), held, l)
				}
				if wait := v.RetryAfter(); !want {
					if before := s.Peek(&l, id, now.Add(wait)-1, bucket.Token); before.Allowed() {
						t.Fatalf("seed %d: admitted before the wait of %v", seed, wait)
					}
					if at := s.Peek(&l, id, now.Add(wait), bucket.Token); !at.Allowed() {
						t.Fatalf("seed %d: denied after the wait of %v", seed, wait)
					}
				}
				mine = want
			}
			if mine {
				_, lease := l.Refill()
				ends[id] = now + bucket.Instant(lease)
			}
		}
	}
}

func TestSpec_ConcurrencyIsChecked(t *testing.T) {
	for _, spec := range []bucket.Spec{
		{Rate: bucket.Rate{Tokens: 1500, Per: time.Second}},
		{Rate: bucket.Rate{Tokens: (bucket.MaxSlots + 1) * bucket.Token, Per: time.Second}},
		{Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Second}, Queue: bucket.Token},
		{Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Second}, Anchor: bucket.AnchorKey},
		{Rate: bucket.Rate{Tokens: bucket.Token}},
	} {
		spec.Algorithm = bucket.AlgorithmConcurrency
		if l, _, err := spec.Compile(); err == nil {
			t.Errorf("%+v compiled to %v", spec, l)
		}
	}
	l := mustSlots(t, 10, 30*time.Second)
	if got, err := bucket.DecodeLimit(l.Encode()); err != nil || got != l {
		t.Errorf("decoded %v, %v", got, err)
	}
	if got := l.String(); got != "10 slots, lease 30s" {
		t.Errorf("got %q", got)
	}
}

func TestParseSlotID(t *testing.T) {
	id := bucket.SlotID{1, 2, 3}
	if got, err := bucket.ParseSlotID(id.String()); err != nil || got != id {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "A", bucket.SlotID{}.String(), id.String() + "A", "!" + id.String()[1:]} {
		if got, err := bucket.ParseSlotID(text); err == nil {
			t.Errorf("%q parsed as %v", text, got)
		}
	}
}
