// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// ErrDuration is wrapped by the errors of [ParseDuration].
var ErrDuration = errors.New("bucket: invalid duration")

// ParseDuration parses decimal numbers with units, such as "300ms", "1.5h" or "1d12h". It accepts the units of
// [time.ParseDuration] plus d for 24 hours and w for 7 days. It never rounds. It rejects fractions of a nanosecond,
// signs, exponents, and numbers without a unit.
func ParseDuration(s string) (time.Duration, error) {
	var total time.Duration
	for rest := s; ; {
		number := leadingPart(rest, true)
		unit := leadingPart(rest[len(number):], false)
		rest = rest[len(number)+len(unit):]
		d, ok := durationUnit(unit)
		if days, ok := calendarUnits[strings.TrimSpace(unit)]; ok {
			return 0, fmt.Errorf("%w: %q: calendar %s are not supported, because their length varies: use days, as in %s", ErrDuration, s, days.name, days.as)
		}
		if !ok || number == "" {
			return 0, fmt.Errorf("%w: %q: write a number and a unit, as in 500ms, 10s, 1m30s, 2h, 7d, 1w", ErrDuration, s)
		}
		d, err := multiplyUnit(number, d)
		if err != nil {
			return 0, fmt.Errorf("%w: %q: %w", ErrDuration, s, err)
		}
		if total > math.MaxInt64-d {
			return 0, fmt.Errorf("%w: %q is out of range", ErrDuration, s)
		}
		if total += d; rest == "" {
			return total, nil
		}
	}
}

// leadingPart returns the longest prefix of s that consists of number characters, or of other characters if
// number is false.
func leadingPart(s string, number bool) string {
	i := strings.IndexFunc(s, func(r rune) bool {
		return (r >= '0' && r <= '9' || r == '.') != number
	})
	if i < 0 {
		return s
	}
	return s[:i]
}

// calendarUnits are units without a fixed length. ParseDuration suggests a replacement for each.
var calendarUnits = func() map[string]struct{ name, as string } {
	units := map[string]struct{ name, as string }{
		"M": {"months", "30d, or 1m for a minute"}, "Y": {"years", "365d"},
	}
	for _, s := range []string{"mo", "mon", "mth", "month", "months", "Mo", "MO", "Month"} {
		units[s] = struct{ name, as string }{"months", "30d"}
	}
	for _, s := range []string{"y", "yr", "yrs", "year", "years", "Year"} {
		units[s] = units["Y"]
	}
	return units
}()

func durationUnit(s string) (time.Duration, bool) {
	switch s {
	case "ns":
		return time.Nanosecond, true
	case "us", "µs", "μs": // U+00B5 and U+03BC
		return time.Microsecond, true
	case "ms":
		return time.Millisecond, true
	case "s":
		return time.Second, true
	case "m":
		return time.Minute, true
	case "h":
		return time.Hour, true
	case "d":
		return 24 * time.Hour, true
	case "w":
		return 7 * 24 * time.Hour, true
	}
	return 0, false
}

func multiplyUnit(number string, unit time.Duration) (time.Duration, error) {
	if number[0] == '.' {
		number = "0" + number
	}
	digits, scale, err := parseDecimal(number)
	if err != nil {
		return 0, err
	}
	for _, prime := range []int64{2, 5} { // 10^scale divides digits·unit, one prime at a time
		for range scale {
			switch {
			case int64(unit)%prime == 0:
				unit /= time.Duration(prime)
			case digits%prime == 0:
				digits /= prime
			default:
				return 0, errors.New("finer than a nanosecond")
			}
		}
	}
	for ; scale < 0; scale++ {
		if digits *= 10; digits > int64(MaxTokens) {
			return 0, errors.New("out of range")
		}
	}
	if digits != 0 && unit > math.MaxInt64/time.Duration(digits) {
		return 0, errors.New("out of range")
	}
	return time.Duration(digits) * unit, nil
}
