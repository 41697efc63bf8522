// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

import (
	"net/http"
	"strconv"
	"time"
)

// modelLimits are the names of limits that the APIs of language models announce, in OpenAI's and Anthropic's fields.
var modelLimits = [...]struct{ name, field string }{
	{"requests", "Requests"},
	{"tokens", "Tokens"},
	{"input-tokens", "Input-Tokens"},
	{"output-tokens", "Output-Tokens"},
}

// ReadModel returns the limits in a response of a language model's API. These are X-RateLimit-Remaining-Tokens and its
// siblings, or Anthropic-RateLimit-Tokens-Remaining and its siblings. Their Reset is the time until the limit is full again,
// and it refills continuously until then: untilFull is true. Without them, ReadModel returns the limits of [Read].
//
// OpenAI documents the time until a limit resets to its initial state: https://platform.openai.com/docs/guides/rate-limits.
// Anthropic documents the time at which it is fully replenished, as in RFC 3339: https://docs.anthropic.com/en/api/rate-limits.
func ReadModel(h http.Header, now time.Time) (found []Announced, untilFull bool) {
	add := func(name, limit, remaining, reset string) {
		left, ok := parseSeconds(joinLines(h, remaining))
		if !ok {
			return
		}
		a := Announced{Name: name, Remaining: left, Reset: readReset(joinLines(h, reset), h, now)}
		a.Quota, _ = parseSeconds(joinLines(h, limit))
		found = append(found, a)
	}
	for _, m := range modelLimits {
		add(m.name, "X-Ratelimit-Limit-"+m.field, "X-Ratelimit-Remaining-"+m.field, "X-Ratelimit-Reset-"+m.field)
		prefix := "Anthropic-Ratelimit-" + m.field
		add(m.name, prefix+"-Limit", prefix+"-Remaining", prefix+"-Reset")
	}
	if len(found) == 0 {
		return Read(h, now), false
	}
	return found, true
}

// readReset reads a duration such as 6m0s, a date (RFC 3339), seconds, or a Unix time. It returns 0 for other values.
func readReset(text string, h http.Header, now time.Time) time.Duration {
	if n, ok := parseSeconds(text); ok {
		if n >= firstUnix {
			return untilServerTime(time.Unix(n, 0), h, now)
		}
		return capSeconds(n)
	}
	if d, err := time.ParseDuration(text); err == nil {
		return min(max(d, 0), maxReset)
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return untilServerTime(at, h, now)
	}
	return 0
}

// RetryAfterModel returns the wait in Retry-After-Ms, which OpenAI and Azure send, or else in Retry-After.
func RetryAfterModel(h http.Header, now time.Time) (time.Duration, bool) {
	text := joinLines(h, "Retry-After-Ms")
	if ms, err := strconv.ParseFloat(text, 64); err == nil && ms >= 0 {
		return time.Duration(min(ms, float64(maxReset/time.Millisecond)) * float64(time.Millisecond)), true
	}
	return RetryAfter(h, now)
}
