// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"context"
	"math/rand/v2"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A spy is a store that notes the keys that it is asked for.
type spy struct {
	mete.Store
	keys []string
}

func (s *spy) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	for i := range charges {
		s.keys = append(s.keys, charges[i].Key)
	}
	return s.Store.Take(ctx, dst, charges, mode)
}

func (s *spy) DeriveKey(context.Context, string) ([32]byte, error) { return [32]byte{1}, nil }

// Each value has one key, whether or not the middleware remembers it, and no two values have
// the same. Long values are never remembered.
func TestKeys_AreStable(t *testing.T) {
	store := &spy{Store: storetest.NewModel(new(clock).instant)}
	limiter, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	handler := httplimit.Must(limiter, "l", "1/1h", 1000, httplimit.ByHeader("X-Api-Key", httplimit.MissingDeny)).Wrap(ok)
	random := rand.New(testseed.PCG(1, 2))
	keys, values := map[string]string{}, map[string]string{}
	for range 20_000 {
		value := strconv.Itoa(random.IntN(1 + random.IntN(2000)))
		if random.IntN(10) == 0 {
			value = strings.Repeat(value, 100)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Api-Key", value)
		store.keys = store.keys[:0]
		serve(handler, r)
		if len(store.keys) != 1 {
			t.Fatalf("value %.20q: the store is asked for %q", value, store.keys)
		}
		key := store.keys[0]
		if known, seen := keys[value]; seen && known != key {
			t.Fatalf("value %.20q has the key %q, and had %q", value, key, known)
		}
		if other, seen := values[key]; seen && other != value {
			t.Fatalf("the values %.20q and %.20q have the key %q", value, other, key)
		}
		keys[value], values[key] = key, value
	}
}
