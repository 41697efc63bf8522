// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/redis/rueidis"
)

// slack is the tolerance for delays of a busy machine.
const slack = 150 * time.Millisecond

// faultLimit refills so slowly that an empty bucket is not full by the end of any fault, even on a slow machine.
// All spending then shows exactly. A bucket of slowLimit does not refill during an assertion.
var (
	faultLimit = faulttest.Limit(400, bucket.PerSecond(2*bucket.Token))
	slowLimit  = faulttest.Limit(200, bucket.Rate{Tokens: bucket.Token, Per: 1000 * time.Hour})
	partsLimit = faulttest.Limit(20_000, bucket.Rate{Tokens: bucket.Token, Per: 100 * time.Hour}) // with nearly empty parts
)

func chargesOf(keys ...string) []store.Charge {
	var charges []store.Charge
	for _, k := range keys {
		charges = append(charges, store.Charge{Key: k, Limit: faultLimit, Cost: bucket.Token})
	}
	return charges
}

func slowCharges(keys ...string) []store.Charge {
	charges := chargesOf(keys...)
	for i := range charges {
		charges[i].Limit = slowLimit
	}
	return charges
}

func partCharges(keys ...string) []store.Charge {
	charges := chargesOf(keys...)
	for i := range charges {
		charges[i].Limit = partsLimit
	}
	return charges
}

func leased(keys ...string) []store.Charge {
	charges := chargesOf(keys...)
	for i := range charges {
		charges[i].Leased = true
	}
	return charges
}

// dialURL connects like redisstore.Open.
func dialURL(t testing.TB, url string, config redisstore.Config) (*redisstore.Store, rueidis.Client) {
	t.Helper()
	options, _, err := redisstore.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return dialWith(t, options, config)
}

func dialWith(t testing.TB, options rueidis.ClientOption, config redisstore.Config) (*redisstore.Store, rueidis.Client) {
	t.Helper()
	client, err := rueidis.NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s, err := redisstore.New(client, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the server may be down by now
	return s, client
}

// startTraffic starts takers, and reads the buckets through client.
func startTraffic(t *testing.T, s mete.Store, client rueidis.Client, takers []*faulttest.Taker) *faulttest.Traffic {
	t.Helper()
	return faulttest.Start(t, faulttest.Place{
		Store: s, Name: "redisstore", Slack: slack,
		State:  func(key string) bucket.State { return stateOf(t, client, key) },
		Unsure: func(key string) bool { return key == "lent" }, // tokens may be leased or lost
		Parts:  client.Mode() == rueidis.ClientModeCluster,
	}, takers)
}

// plainAndOthers are two takers of each kind.
func plainAndOthers() []*faulttest.Taker {
	var all []*faulttest.Taker
	for range 2 {
		all = append(all, &faulttest.Taker{Charges: chargesOf("plain")}, &faulttest.Taker{Charges: chargesOf("id"), IDs: true},
			&faulttest.Taker{Charges: chargesOf("one", "other")}, &faulttest.Taker{Charges: chargesOf("all:id", "id"), IDs: true},
			&faulttest.Taker{Charges: leased("lent")}, &faulttest.Taker{Charges: append(leased("lent"), chargesOf("plain")...)})
	}
	return all
}

// stateOf reads a bucket's state with a plain GET, as an operator would.
func stateOf(t *testing.T, client rueidis.Client, key string) bucket.State {
	t.Helper()
	text, err := client.Do(t.Context(), client.B().Get().Key("tb:"+key).Build()).ToString()
	if err != nil {
		t.Fatalf("state of %q: %v", key, err)
	}
	return readState(t, text)
}

func readState(t interface{ Fatalf(string, ...any) }, text string) (s bucket.State) {
	var capacity, n int64
	limit, numbers, _ := strings.Cut(text, " ")
	if _, err := fmt.Sscanf(limit, "2:%d+%d/%d", &capacity, &n, &s.Unit); err != nil || len(numbers) != 16 { // two doubles
		t.Fatalf("state %q: %v, %d bytes behind the limit", text, err, len(numbers))
	}
	var values [2]float64
	if _, err := binary.Decode([]byte(numbers), binary.LittleEndian, &values); err != nil {
		t.Fatalf("state %q: %v", text, err)
	}
	s.Spent, s.AsOf = int64(values[0]), bucket.Instant(values[1])
	return s
}

// charged returns the number of takes missing from a bucket, including the refill since.
func charged(t *testing.T, client rueidis.Client, key string) int64 {
	t.Helper()
	s := stateOf(t, client, key)
	unit := int64(bucket.Token) * s.Unit
	return (s.Spent + unit - 1) / unit
}
