// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
)

// A quota is the limit that a client sends with CL.THROTTLE.
type quota struct{ burst, count, period int64 }

// limitCache keeps recent limits, because to compile a limit is slower than to decide with it. Its size is fixed,
// however many limits clients send.
type limitCache [cachedLimits]atomic.Pointer[cachedLimit]

const cachedLimits = 1 << 8

type cachedLimit struct {
	quota quota
	limit bucket.Limit
}

// get returns the limit of a quota. The error names the bounds.
func (c *limitCache) get(q quota) (*bucket.Limit, error) {
	mixed := uint64(q.burst)*0x9e3779b97f4a7c15 ^ uint64(q.count)*0xff51afd7ed558ccd ^ uint64(q.period)*0xc4ceb9fe1a85ec53
	place := &c[(mixed^mixed>>32)*0x9e3779b97f4a7c15>>56]
	if e := place.Load(); e != nil && e.quota == q {
		return &e.limit, nil
	}
	limit, err := q.compile()
	if err != nil {
		return nil, err
	}
	e := &cachedLimit{q, limit}
	place.Store(e)
	return &e.limit, nil
}

// The bounds of a quota. A capacity of one more token is still an amount, so that an impossible quantity has a cost.
const (
	maxBurst  = int64(bucket.MaxTokens/bucket.Token) - 2
	maxCount  = int64(bucket.MaxTokens / bucket.Token)
	maxPeriod = int64(bucket.LongestWait / time.Second)
)

// compile returns the token bucket of q. Its capacity is one token more than the burst, as in redis-cell.
func (q quota) compile() (bucket.Limit, error) {
	for _, one := range []struct {
		name              string
		value, least, max int64
	}{{"max_burst", q.burst, 0, maxBurst}, {"count", q.count, 1, maxCount}, {"period", q.period, 1, maxPeriod}} {
		if one.value == 0 && one.least > 0 {
			return bucket.Limit{}, fmt.Errorf("%s is 0: Zero rates are not supported; it must be between 1 and %d", one.name, one.max)
		}
		if one.value < one.least || one.value > one.max {
			return bucket.Limit{}, fmt.Errorf("%s must be between %d and %d", one.name, one.least, one.max)
		}
	}
	rate := bucket.Rate{Tokens: bucket.Tokens(q.count) * bucket.Token, Per: time.Duration(q.period) * time.Second}
	return bucket.NewLimit(bucket.Tokens(q.burst+1)*bucket.Token, rate)
}
