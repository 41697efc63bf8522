// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// A reader of Redis must not be able to settle a hold: no key, member or value contains its ID.
func TestHold_TheIDIsSecret(t *testing.T) {
	t.Parallel()
	client := connect(t, proctest.StartRedis(t).Addr)
	s := open(t, client, redisstore.Config{})
	l, err := bucket.NewLimit(10*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i, refund := range []bool{false, true} {
		h := store.Hold{ID: fmt.Sprintf("secret%016d", i), TTL: time.Hour, Refund: refund, Terms: make([]store.Terms, 1)}
		if _, id, err := s.Hold(t.Context(), nil, []store.Charge{{Key: "k", Limit: l, Cost: bucket.Token}}, mete.Mode{}, h); err != nil || id == "" {
			t.Fatalf("id %q, error %v", id, err)
		}
	}
	keys, err := client.Do(t.Context(), client.B().Keys().Pattern("*").Build()).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		value, err := client.Do(t.Context(), client.B().Dump().Key(key).Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, key, value)
		if members, err := client.Do(t.Context(), client.B().Zrange().Key(key).Min("0").Max("-1").Build()).AsStrSlice(); err == nil {
			all = append(all, members...)
		}
	}
	if len(keys) < 5 { // a row, two records, the index and the refunds
		t.Errorf("keys %q, want 5 of the holds", keys)
	}
	for _, text := range all {
		if strings.Contains(text, "secret") {
			t.Errorf("%q contains the ID of a hold", text)
		}
	}
}
