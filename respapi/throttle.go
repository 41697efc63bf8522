// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/store"
)

const throttleUsage = "ERR Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"

// throttle executes CL.THROTTLE key max_burst count period [quantity].
func throttle(c *client, args [][]byte) {
	b := c.busy
	if len(args) != 5 && len(args) != 6 {
		b.fail(throttleUsage)
		return
	}
	var numbers [4]int64
	numbers[3] = 1
	for i, text := range args[2:] {
		n, ok := parseInt(text)
		if !ok {
			b.fail(fmt.Sprintf("ERR Couldn't parse as integer: %.100s", text))
			return
		}
		numbers[i] = n
	}
	q, quantity := quota{numbers[0], numbers[1], numbers[2]}, numbers[3]
	limit, err := c.server.limits.get(q)
	switch {
	case err != nil:
		b.fail("ERR " + err.Error())
		return
	case quantity < 0:
		b.fail("ERR quantity must not be negative")
		return
	case len(args[1]) == 0:
		b.fail("ERR the key must not be empty")
		return
	}
	// No quantity above the capacity is ever allowed, so the decision is the same for all of them.
	quantity = min(quantity, q.burst+2)
	b.charge[0] = mete.Charge{Key: throttleKey(args[1]), Limit: *limit, Cost: mete.Tokens(quantity)}
	req := mete.Request{Charges: b.charge[:]}
	var d mete.Decision
	if quantity == 0 {
		d, err = c.server.throttle.Peek(c.server.ctx, req)
	} else {
		d, err = c.server.throttle.Take(c.server.ctx, req)
	}
	if err != nil {
		b.failDecision(err)
		return
	}
	b.array(5)
	b.throttled(&d, q.burst+1)
}

// throttled appends the five numbers of a decision in the order of redis-cell. The first is 1 if the request is
// limited. The retry is -1 if the request is allowed, or if waiting does
// not help. Without a bucket, nothing remains.
func (r *reply) throttled(d *mete.Decision, capacity int64) {
	limited, remaining, retry, reset := int64(1), int64(0), seconds(d.RetryAfter), int64(0)
	if d.Allowed {
		limited, retry = 0, -1
	}
	if limits := d.Limits(); len(limits) > 0 {
		s := &limits[len(limits)-1] // after the limits of a policy
		remaining, reset = s.Room().Whole(), seconds(s.FullAfter())
	} else if !d.Allowed {
		reset = max(retry, 0)
	}
	r.integer(limited)
	r.integer(capacity)
	r.integer(remaining)
	r.integer(retry)
	r.integer(reset)
}

// seconds rounds up, so that a client that waits is never too early. Never is -1.
func seconds(d time.Duration) int64 {
	if d == bucket.Never {
		return -1
	}
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return whole
}

// No key of a policy starts with these prefixes, because policies escape spaces.
const (
	throttlePrefix = "cl throttle:"
	hashedPrefix   = "cl throttle#"
)

// throttleKey returns the bucket key of a client's key. It hashes keys that stores reject.
func throttleKey(key []byte) string {
	if len(throttlePrefix)+len(key) <= store.MaxKeyBytes {
		var room [len(throttlePrefix) + 64]byte
		if full := string(append(append(room[:0], throttlePrefix...), key...)); !shards.IsKey(full) {
			return full
		}
	}
	sum := sha256.Sum256(key)
	return hashedPrefix + base64.RawURLEncoding.EncodeToString(sum[:])
}
