// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
)

// Instants from dateFrom on are formatted as dates. Earlier ones are seconds of a trace that starts at 0.
const dateFrom = bucket.Instant(1_000_000_000 * 1_000_000) // in 2001

const day = 24 * 3600 * second

// formatInstant formats an instant of a trace that ends at last.
func formatInstant(i, last bucket.Instant) string {
	if last < dateFrom {
		return string(api.AppendMicros(nil, int64(i))) + " s"
	}
	return i.Time().Format("2006-01-02 15:04:05.999999Z")
}

// when formats the time of a request. It omits the date if all requests are on one day.
func (c *counts) when(i bucket.Instant) string {
	text := formatInstant(i, c.requests.last)
	if c.requests.last < dateFrom || c.requests.first < 0 || c.requests.first/day != c.requests.last/day {
		return text
	}
	_, clock, _ := strings.Cut(text, " ")
	return clock
}

// formatDuration formats a duration in microseconds.
func formatDuration(micros bucket.Instant) string {
	if micros > bucket.Instant(bucket.Never/time.Microsecond) {
		return string(api.AppendMicros(nil, int64(micros))) + " s"
	}
	return prose.Duration(time.Duration(micros) * time.Microsecond)
}

// percent formats the share of n in all with two decimals. Only the exact values are 100% and 0%.
func percent(n, all int64) string {
	if all == 0 {
		return "-"
	}
	parts := int64(math.Round(float64(n) / float64(all) * 10_000))
	switch {
	case n > 0 && parts == 0:
		return "< 0.01%"
	case n < all && parts == 10_000:
		return "> 99.99%"
	}
	return fmt.Sprintf("%d.%02d%%", parts/100, parts%100)
}

// grouped formats n with a comma between thousands.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && n > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
