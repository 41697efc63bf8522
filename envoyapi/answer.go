// SPDX-License-Identifier: Apache-2.0

package envoyapi

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// answer returns the response for a decision.
func (r *RateLimit) answer(c *call, d *mete.Decision) *ratelimitv3.RateLimitResponse {
	memory := newAnswer(len(c.indexes))
	response := &memory.response
	response.OverallCode = codeOf(d.Allowed)
	denied := -1
	if !d.Allowed && len(d.Limits()) == 0 {
		denied = d.Part()
	}
	for i := range c.indexes {
		at := &c.indexes[i]
		s := &memory.status[i]
		s.Code = codeOf(at.part < 0 || at.part != denied)
		if limit := findLimit(d, at); limit != nil {
			r.describe(s, limit, at, &memory.reset[i])
		} else if at.part >= 0 && at.part == denied {
			s.DurationUntilReset = resetOf(&memory.reset[i], d.RetryAfter)
		}
		memory.statuses[i] = s
	}
	response.Statuses = memory.statuses
	if !r.config.OmitFields {
		response.ResponseHeadersToAdd = r.headers(d)
	}
	if !d.Allowed || d.Degraded || d.Override != nil || d.Wait > 0 {
		response.DynamicMetadata = metadataOf(c, d)
	}
	return response
}

func codeOf(allowed bool) ratelimitv3.RateLimitResponse_Code {
	if allowed {
		return ratelimitv3.RateLimitResponse_OK
	}
	return ratelimitv3.RateLimitResponse_OVER_LIMIT
}

// An answerMemory holds the messages of a response, in one allocation for one descriptor.
type answerMemory struct {
	response ratelimitv3.RateLimitResponse
	statuses []*ratelimitv3.RateLimitResponse_DescriptorStatus
	status   []ratelimitv3.RateLimitResponse_DescriptorStatus
	reset    []durationpb.Duration
}

// fewDescriptors is the number of descriptors that share one allocation.
const fewDescriptors = 2

type fewAnswers struct {
	answerMemory
	statuses [fewDescriptors]*ratelimitv3.RateLimitResponse_DescriptorStatus
	status   [fewDescriptors]ratelimitv3.RateLimitResponse_DescriptorStatus
	reset    [fewDescriptors]durationpb.Duration
}

func newAnswer(n int) *answerMemory {
	if n <= fewDescriptors {
		m := new(fewAnswers)
		m.answerMemory.statuses, m.answerMemory.status, m.answerMemory.reset = m.statuses[:n], m.status[:n], m.reset[:n]
		return &m.answerMemory
	}
	return &answerMemory{
		statuses: make([]*ratelimitv3.RateLimitResponse_DescriptorStatus, n),
		status:   make([]ratelimitv3.RateLimitResponse_DescriptorStatus, n),
		reset:    make([]durationpb.Duration, n),
	}
}

// findLimit returns the limit that describes a descriptor: the denying one with the longest wait, or else the one with
// the fewest tokens left. It returns nil if no limit applies.
func findLimit(d *mete.Decision, at *index) (found *mete.Status) {
	limits := d.Limits()
	for i := range limits {
		s := &limits[i]
		if !s.HasPart(at.part) && (at.charge == "" || s.Key != at.charge) {
			continue
		}
		switch {
		case found == nil:
			found = s
		case found.Allowed != s.Allowed:
			if !s.Allowed {
				found = s
			}
		case s.Allowed && s.Room() < found.Room(), !s.Allowed && s.RetryAfter > found.RetryAfter:
			found = s
		}
	}
	return found
}

// describe sets the status of a descriptor to a limit.
func (r *RateLimit) describe(s *ratelimitv3.RateLimitResponse_DescriptorStatus, limit *mete.Status, at *index, reset *durationpb.Duration) {
	s.Code = codeOf(limit.Allowed)
	if at.charge != "" && limit.Key == at.charge {
		s.CurrentLimit = callersLimit(at.limit)
	} else {
		s.CurrentLimit = r.currentLimit(limit.Limit)
	}
	until := limit.FullAfter()
	if limit.Allowed {
		s.LimitRemaining = uint32(max(min(limit.Room().Whole(), math.MaxUint32), 0))
	} else {
		until = limit.RetryAfter
	}
	s.DurationUntilReset = resetOf(reset, until)
}

// resetOf sets a duration, rounded up to whole seconds because Envoy reads only these. It is absent if no wait helps.
func resetOf(message *durationpb.Duration, d time.Duration) *durationpb.Duration {
	if d == bucket.Never {
		return nil
	}
	message.Seconds = ceilSeconds(d)
	return message
}

func ceilSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}

// maxLimits bounds the remembered messages of limits. They include limits of earlier policies. At the bound, all are
// dropped. Limits that callers set are not remembered.
const maxLimits = 8192

// currentLimit returns the message for a limit of the policy. Responses share it, and do not change it.
func (r *RateLimit) currentLimit(l *policy.Limit) *ratelimitv3.RateLimitResponse_RateLimit {
	if kept, ok := r.limits.Load(l); ok {
		return kept.(*ratelimitv3.RateLimitResponse_RateLimit)
	}
	requests, multiplier, unit := describeRate(l.Rate)
	made := newCurrentLimit(l.Name, requests, unit, multiplier)
	if r.limitCount.Add(1) > maxLimits {
		r.limits.Clear()
		r.limitCount.Store(1)
	}
	r.limits.Store(l, made)
	return made
}

// callersLimit returns the message for the limit that the caller set, with the same numbers.
func callersLimit(o *commonv3.RateLimitDescriptor_RateLimitOverride) *ratelimitv3.RateLimitResponse_RateLimit {
	unit := ratelimitv3.RateLimitResponse_RateLimit_Unit(o.GetUnit()) // the numbers of both enumerations are equal
	return newCurrentLimit("", o.GetRequestsPerUnit(), unit, o.GetUnitMultiplier().GetValue())
}

func newCurrentLimit(name string, requests uint32, unit ratelimitv3.RateLimitResponse_RateLimit_Unit, multiplier uint32) *ratelimitv3.RateLimitResponse_RateLimit {
	m := &ratelimitv3.RateLimitResponse_RateLimit{Name: name, RequestsPerUnit: requests, Unit: unit}
	if multiplier > 1 {
		m.UnitMultiplier = wrapperspb.UInt32(multiplier)
	}
	return m
}

// describeRate returns a rate as requests in a multiple of the largest unit that fits. It keeps the numbers of the
// rate if they are whole requests and whole seconds, and otherwise multiplies both by the smallest sufficient number.
// Requests above 2³²−1 saturate.
func describeRate(rate bucket.Rate) (requests, multiplier uint32, unit ratelimitv3.RateLimitResponse_RateLimit_Unit) {
	const second = int64(time.Second / time.Microsecond)
	tokens, micros := int64(rate.Tokens), rate.Per.Microseconds()
	if k := int64(bucket.Token) / gcd(tokens, int64(bucket.Token)); tokens < math.MaxInt64/k && micros < math.MaxInt64/k {
		tokens, micros = tokens*k, micros*k
	}
	if k := second / gcd(micros, second); tokens < math.MaxInt64/k && micros < math.MaxInt64/k {
		tokens, micros = tokens*k, micros*k
	}
	seconds := max(micros/second, 1)
	unit, multiple := ratelimitv3.RateLimitResponse_RateLimit_SECOND, seconds
	for _, u := range []struct {
		unit    ratelimitv3.RateLimitResponse_RateLimit_Unit
		seconds int64
	}{{ratelimitv3.RateLimitResponse_RateLimit_MINUTE, 60}, {ratelimitv3.RateLimitResponse_RateLimit_HOUR, 3600}, {ratelimitv3.RateLimitResponse_RateLimit_DAY, 86400}} {
		if seconds%u.seconds == 0 {
			unit, multiple = u.unit, seconds/u.seconds
		}
	}
	return uint32(min(tokens/int64(bucket.Token), math.MaxUint32)), uint32(min(multiple, math.MaxUint32)), unit
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

var headers = sync.Pool{New: func() any { return http.Header{} }}

// headers returns the RateLimit fields and Retry-After. Limits that callers set have no name, and no field.
func (r *RateLimit) headers(d *mete.Decision) []*corev3.HeaderValue {
	own := func(s mete.Status) bool { return s.Rule == nil || s.Rule.Name == "" }
	if limits := d.Limits(); slices.ContainsFunc(limits, own) {
		shown := d.WithLimits(slices.DeleteFunc(slices.Clone(limits), own)...)
		d = &shown
	}
	h := headers.Get().(http.Header)
	defer headers.Put(h)
	clear(h)
	r.fields.Header(h, d)
	n := 0
	for _, values := range h {
		n += len(values)
	}
	if n == 0 {
		return nil
	}
	memory := newHeaderMemory(n)
	list := memory.list[:0]
	for name, values := range h {
		for _, value := range values {
			m := &memory.values[len(list)]
			m.Key, m.Value = lowerName(name), value
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b *corev3.HeaderValue) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// lowerNames are the names of fields in lower case, as HTTP/2 has them, by their canonical form.
var lowerNames = func() map[string]string {
	all := map[string]string{}
	for _, name := range []string{
		"Ratelimit", "Ratelimit-Policy", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
		"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Reason", "X-Ratelimit-Warning",
		"Retry-After", "Cache-Control", "Content-Type",
	} {
		all[name] = strings.ToLower(name)
	}
	return all
}()

// lowerName returns a name in lower case, without an allocation for the known names.
func lowerName(name string) string {
	if lower, ok := lowerNames[name]; ok {
		return lower
	}
	return strings.ToLower(name)
}

// fewHeaders is the number of headers of an answer with the default fields.
const fewHeaders = 8

type headerMemory struct {
	list   []*corev3.HeaderValue
	values []corev3.HeaderValue
}

type fewHeaderMemory struct {
	headerMemory
	list   [fewHeaders]*corev3.HeaderValue
	values [fewHeaders]corev3.HeaderValue
}

// newHeaderMemory returns memory for n headers, mostly in one allocation.
func newHeaderMemory(n int) *headerMemory {
	if n > fewHeaders {
		return &headerMemory{list: make([]*corev3.HeaderValue, n), values: make([]corev3.HeaderValue, n)}
	}
	m := new(fewHeaderMemory)
	m.headerMemory.list, m.headerMemory.values = m.list[:n], m.values[:n]
	return &m.headerMemory
}

// metadataOf returns the facts about a decision that Envoy's access log can show.
func metadataOf(c *call, d *mete.Decision) *structpb.Struct {
	fields := map[string]*structpb.Value{}
	set := func(name, value string) {
		if value != "" {
			fields[name] = structpb.NewStringValue(value)
		}
	}
	set("rule", d.Rule)
	set("reason", d.Reason)
	if d.Override != nil {
		set("override", d.Override.ID)
	}
	if d.Degraded {
		fields["degraded"] = structpb.NewBoolValue(true)
		set("failure", string(d.Failure))
	}
	if d.Wait > 0 && d.Wait != bucket.Never {
		fields["wait_seconds"] = structpb.NewNumberValue(d.Wait.Seconds())
	}
	if part := d.Part(); !d.Allowed && part >= 0 {
		i := slices.IndexFunc(c.indexes, func(at index) bool { return at.part == part })
		fields["descriptor"] = structpb.NewNumberValue(float64(i))
	}
	return &structpb.Struct{Fields: fields}
}
