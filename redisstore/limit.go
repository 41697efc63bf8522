// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"

	"github.com/metehq/mete/bucket"
)

type limitText struct {
	limit bucket.Limit
	text  string
}

// maxUnits is the most that a token bucket can have spent, as in package bucket.
const maxUnits = 1<<53 - 1

// formatLimit returns the text of a limit, which identifies its account in a row. Different limits have different
// texts. The text is short, because Redis keeps strings of up to 44 bytes in one allocation. take_account.lua
// documents and parses it.
func formatLimit(l *bucket.Limit) string {
	n, per := l.Refill()
	text, most := make([]byte, 0, 64), int64(maxUnits)
	switch l.Algorithm() {
	case bucket.AlgorithmContinuous:
		most /= max(per, 1)
	case bucket.AlgorithmStepped:
		text = append(text, "skfc"[l.Anchor()])
		if _, ok := l.Calendar(); ok {
			most = min(most, bucket.MaxCalendarWindows*int64(n))
		}
	case bucket.AlgorithmSlidingWindow:
		text, most = append(text, 'w'), int64(bucket.MaxWindowTokens)
	case bucket.AlgorithmConcurrency:
		text, most = append(text, 'h'), int64(l.Capacity())
	case bucket.AlgorithmSlidingLog:
		text, most = append(text, 'l'), int64(bucket.MaxWindowTokens)
	}
	text = strconv.AppendInt(text, int64(l.Capacity()), 10)
	text = strconv.AppendInt(append(text, '+'), int64(n), 10)
	text = strconv.AppendInt(append(text, '/'), per, 10)
	switch owed := int64(l.MaxReserved()); {
	case l.Queued():
		text = strconv.AppendInt(append(text, 'q'), owed, 10)
	case owed != most-int64(l.Capacity()):
		text = strconv.AppendInt(append(text, 'd'), owed, 10)
	}
	if start := l.Start().Microseconds(); start != 0 {
		text = strconv.AppendInt(append(text, '@'), start, 10)
	}
	if c, ok := l.Calendar(); ok {
		text = append(append(text, '@'), c.Encode()...)
	}
	return string(text)
}
