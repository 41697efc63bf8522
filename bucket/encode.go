// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"fmt"
	"strconv"
	"strings"
)

// Encode returns l as text without spaces or colons, for stores that keep limits with their states.
// [DecodeLimit] parses it.
func (l Limit) Encode() string {
	text := make([]byte, 0, 64)
	how, calendar := l.encodeHow()
	for i, v := range [...]int64{int64(l.capacity), int64(l.debt), l.n, l.p, int64(how)} {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, v, 10)
	}
	return string(append(text, calendar...))
}

// DecodeLimit parses the result of [Limit.Encode]. Errors wrap [ErrLimit].
func DecodeLimit(text string) (Limit, error) {
	var v [5]int64
	fields := strings.Split(text, ",")
	calendar := ""
	if len(fields) == len(v)+1 {
		calendar, fields = fields[len(v)], fields[:len(v)]
	}
	if len(fields) != len(v) {
		return Limit{}, fmt.Errorf("%w: %q: must be five comma-separated numbers", ErrLimit, text)
	}
	for i, f := range fields {
		var err error
		if v[i], err = strconv.ParseInt(f, 10, 64); err != nil || v[i] < 0 || v[i] > maxUnits && i < 4 {
			return Limit{}, fmt.Errorf("%w: %q: must be five comma-separated numbers", ErrLimit, text)
		}
	}
	l := Limit{capacity: Tokens(v[0]), debt: Tokens(v[1]), n: v[2], p: v[3], how: uint64(v[4])}
	if err := l.decodeCalendar(calendar); err != nil {
		return Limit{}, err
	}
	if l != (Limit{}) && !l.inBounds() {
		return Limit{}, fmt.Errorf("%w: %q: out of range", ErrLimit, text)
	}
	return l, nil
}

func (l *Limit) inBounds() bool {
	if l.n < 1 || l.p < 1 || l.Algorithm() > AlgorithmConcurrency || l.how&howFree != 0 || l.Anchor() != AnchorEpoch && l.Algorithm() != AlgorithmStepped {
		return false
	}
	unit, most := int64(1), int64(maxUnits)
	switch l.Algorithm() {
	case AlgorithmContinuous:
		unit = l.p
	case AlgorithmStepped:
		if l.hasCalendar() {
			return l.p == CalendarWindow(l.almanac().Window).Length().Microseconds() &&
				int64(l.capacity+l.debt) <= min(maxUnits, MaxCalendarWindows*l.n)
		}
		if l.p > maxStepMicros {
			return false
		}
	case AlgorithmConcurrency:
		if l.debt != 0 || l.capacity%Token != 0 || int64(l.capacity) != l.n || l.capacity > MaxSlots*Token || l.p > maxWindowMicros {
			return false
		}
	default:
		most = int64(MaxWindowTokens)
		if l.p > maxWindowMicros {
			return false
		}
	}
	return l.start() < l.p && int64(l.capacity+l.debt) <= most/unit
}
