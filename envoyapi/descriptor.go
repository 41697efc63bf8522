// SPDX-License-Identifier: Apache-2.0

package envoyapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// ChargeKey is the key of an entry that marks the hits of work that has already happened: see the package
// documentation. The value has no effect.
const ChargeKey = "mete_charge"

// MaxEntries bounds the entries of one descriptor.
const MaxEntries = 64

// The names of the attributes.
const (
	domainAttribute  = "envoy:domain"
	descriptorPrefix = "descriptor:"
	numberMark       = '#'
)

// facts are the attributes of one descriptor.
type facts struct {
	domain  string
	entries []*commonv3.RateLimitDescriptor_Entry
}

// Lookup implements [policy.Attributes].
func (f *facts) Lookup(a policy.Attribute) (string, bool) {
	name := a.String()
	if name == domainAttribute {
		return f.domain, true
	}
	key, ok := strings.CutPrefix(name, descriptorPrefix)
	if !ok {
		return "", false
	}
	if value, ok := f.find(key, 1); ok {
		return value, true
	}
	if at := strings.LastIndexByte(key, numberMark); at > 0 {
		number := key[at+1:]
		if n, err := strconv.Atoi(number); err == nil && n >= 2 && strconv.Itoa(n) == number {
			return f.find(key[:at], n)
		}
	}
	return "", false
}

// find returns the value of the n-th entry with the key.
func (f *facts) find(key string, n int) (string, bool) {
	for _, e := range f.entries {
		if e.GetKey() != key {
			continue
		}
		if n--; n == 0 {
			return e.GetValue(), true
		}
	}
	return "", false
}

// checkEntries rejects too many entries, and a key that has the form of a repeated key next to that repeated key.
//
// A repeated key has numbered attributes. With the first or the last value only, a rule would read a value that
// depends on which entries Envoy skipped. An error would let the request pass, because Envoy allows requests after
// an error by default.
func checkEntries(entries []*commonv3.RateLimitDescriptor_Entry) error {
	if len(entries) > MaxEntries {
		return fmt.Errorf("%d entries: must be at most %d", len(entries), MaxEntries)
	}
	for i, e := range entries {
		n := 1
		for _, earlier := range entries[:i] {
			if earlier.GetKey() == e.GetKey() {
				n++
			}
		}
		if n == 1 {
			continue
		}
		numbered := e.GetKey() + string(numberMark) + strconv.Itoa(n)
		for _, other := range entries {
			if other.GetKey() == numbered {
				return fmt.Errorf("the keys %.64q and %.64q are ambiguous: rename one of them", e.GetKey(), numbered)
			}
		}
	}
	return nil
}

// readHits returns a part with the cost of a descriptor.
func readHits(req *ratelimitv3.RateLimitRequest, d *commonv3.RateLimitDescriptor) (mete.Part, error) {
	hits, given := uint64(req.GetHitsAddend()), false
	if own := d.GetHitsAddend(); own != nil {
		hits, given = own.GetValue(), true
	}
	if hits > uint64(bucket.MaxTokens.Whole()) {
		return mete.Part{}, fmt.Errorf("hits_addend %d: must be at most %d", hits, bucket.MaxTokens.Whole())
	}
	return mete.Part{Cost: mete.Tokens(hits), Look: given && hits == 0}, nil
}

// callerPrefix begins the keys of the limits that callers set. No limit of a policy has such a name.
const callerPrefix = "envoy:limit:"

// newCharge returns the charge for the limit that the caller set. Its key has the domain and the entries as a hash:
// it is short, and does not contain the values.
func newCharge(f *facts, o *commonv3.RateLimitDescriptor_RateLimitOverride, part *mete.Part) (mete.Charge, error) {
	limit, err := callerLimit(o)
	if err != nil {
		return mete.Charge{}, err
	}
	hash := sha256.New()
	var length [8]byte
	write := func(s string) {
		binary.BigEndian.PutUint64(length[:], uint64(len(s)))
		hash.Write(length[:])
		hash.Write([]byte(s))
	}
	write(f.domain)
	for _, e := range f.entries {
		write(e.GetKey())
		write(e.GetValue())
	}
	charge := mete.Charge{Key: callerPrefix + base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:18]), Limit: limit, Cost: part.Cost}
	if charge.Cost == 0 && !part.Look {
		charge.Cost = 1
	}
	return charge, nil
}

// units are the lengths of Envoy's units.
var units = map[typev3.RateLimitUnit]time.Duration{
	typev3.RateLimitUnit_SECOND: time.Second,
	typev3.RateLimitUnit_MINUTE: time.Minute,
	typev3.RateLimitUnit_HOUR:   time.Hour,
	typev3.RateLimitUnit_DAY:    day,
	typev3.RateLimitUnit_MONTH:  30 * day,
	typev3.RateLimitUnit_YEAR:   365 * day,
}

const (
	day = 24 * time.Hour

	// maxPeriod bounds unit × unit_multiplier.
	maxPeriod = 100 * 365 * day
)

func callerLimit(o *commonv3.RateLimitDescriptor_RateLimitOverride) (bucket.Limit, error) {
	unit, ok := units[o.GetUnit()]
	if !ok {
		return bucket.Limit{}, fmt.Errorf("limit: unit %v: must be SECOND, MINUTE, HOUR, DAY, MONTH or YEAR", o.GetUnit())
	}
	multiplier := int64(1)
	if given := o.GetUnitMultiplier(); given != nil {
		multiplier = int64(given.GetValue())
	}
	if multiplier < 1 || multiplier > int64(maxPeriod/unit) {
		return bucket.Limit{}, fmt.Errorf("limit: unit_multiplier %d: must be between 1 and %d for %v", multiplier, int64(maxPeriod/unit), o.GetUnit())
	}
	tokens := bucket.Tokens(o.GetRequestsPerUnit()) * bucket.Token
	spec := bucket.Spec{Capacity: tokens, Rate: bucket.Rate{Tokens: tokens, Per: time.Duration(multiplier) * unit}}
	if tokens == 0 { // denies every hit
		spec.Rate.Tokens, spec.MaxReserved = bucket.Token, new(bucket.Tokens)
	}
	limit, _, err := spec.Compile()
	if err != nil {
		return bucket.Limit{}, fmt.Errorf("limit: %d per %d %v: %w", o.GetRequestsPerUnit(), multiplier, o.GetUnit(), err)
	}
	return limit, nil
}
