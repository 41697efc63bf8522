// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
)

// Seconds is a non-negative duration. In JSON it is a number of seconds, exact to the microsecond: 0.1, 2,
// 0.000001. [bucket.Never] is null.
type Seconds time.Duration

// Duration returns s as a [time.Duration].
func (s Seconds) Duration() time.Duration { return time.Duration(s) }

// Append appends s as JSON. It rounds up to a microsecond, so that no client retries too early.
func (s Seconds) Append(b []byte) []byte {
	if s == Seconds(bucket.Never) {
		return append(b, "null"...)
	}
	micros := int64(time.Duration(s) / time.Microsecond)
	if time.Duration(s)%time.Microsecond > 0 {
		micros++
	}
	return AppendMicros(b, micros)
}

// AppendMicros appends a non-negative number of microseconds as seconds: 0, 2, 0.1, 12.000001. It uses integers
// to avoid rounding errors.
func AppendMicros(b []byte, micros int64) []byte {
	b = strconv.AppendInt(b, micros/1e6, 10)
	if frac := micros % 1e6; frac != 0 {
		var buf [7]byte
		digits := strconv.AppendInt(buf[:0], 1e6+frac, 10)[1:]
		for digits[len(digits)-1] == '0' {
			digits = digits[:len(digits)-1]
		}
		b = append(append(b, '.'), digits...)
	}
	return b
}

// MarshalJSON implements [encoding/json.Marshaler].
func (s Seconds) MarshalJSON() ([]byte, error) { return s.Append(nil), nil }

// UnmarshalJSON implements [encoding/json.Unmarshaler]. It rejects negative numbers and more than 6 decimals.
func (s *Seconds) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		*s = Seconds(bucket.Never)
		return nil
	}
	whole, frac, _ := strings.Cut(text, ".")
	if len(frac) > 6 {
		return fmt.Errorf("api: %.40q is not a number of seconds with at most 6 decimals", text)
	}
	micros, err := strconv.ParseUint(whole+frac+"000000"[len(frac):], 10, 63)
	if err != nil || micros > uint64(bucket.Never/time.Microsecond) {
		return fmt.Errorf("api: %.40q is not a number of seconds with at most 6 decimals", text)
	}
	*s = Seconds(time.Duration(micros) * time.Microsecond)
	return nil
}

// Amount is an amount of tokens in thousandths, like [bucket.Tokens]. In JSON it is a number of tokens: 20, 0.5.
type Amount bucket.Tokens

// Tokens returns a as [bucket.Tokens].
func (a Amount) Tokens() bucket.Tokens { return bucket.Tokens(a) }

// String formats a as a decimal number of tokens.
func (a Amount) String() string { return bucket.Tokens(a).String() }

// MarshalJSON implements [encoding/json.Marshaler].
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (a *Amount) UnmarshalJSON(data []byte) error {
	text, negative := strings.CutPrefix(string(data), "-")
	t, err := bucket.ParseTokens(text)
	if err != nil {
		return fmt.Errorf("api: %.40q is not an amount of tokens", data)
	}
	if negative {
		t = -t
	}
	*a = Amount(t)
	return nil
}
