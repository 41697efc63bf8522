// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/envoyapi/dropin"
	"github.com/metehq/mete/memstore"
)

// ours is mete's service in place of the original, with a store in memory and a clock that each call sets.
type ours struct {
	service *dropin.Service
	now     atomic.Int64
}

func newOurs(t testing.TB, o dropin.Options) *ours {
	t.Helper()
	m := &ours{}
	store, err := memstore.New(memstore.Config{Now: func() bucket.Instant { return bucket.Instant(m.now.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if m.service, err = dropin.NewService(limiter, o); err != nil {
		t.Fatal(err)
	}
	return m
}

// load replaces the configuration.
func (m *ours) load(files ...dropin.File) error {
	config, err := dropin.Parse(files, dropin.ConfigOptions{})
	if err == nil {
		m.service.SetConfig(config)
	}
	return err
}

// answer decides a request at a time.
func (m *ours) answer(at time.Time, req *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	m.now.Store(int64(bucket.At(at)))
	return m.service.ShouldRateLimit(context.Background(), req)
}

// counters returns the statistics that are not zero.
func (m *ours) counters() map[string]uint64 {
	counters := map[string]uint64{}
	for _, c := range m.service.Counters() {
		if c.Value != 0 {
			counters[c.Name] = c.Value
		}
	}
	return counters
}
