// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/prose"
)

// dateFrom is the instant from which times are taken for dates: traces that
// start at 0 are shown in seconds.
const dateFrom = bucket.Instant(1_000_000_000 * 1_000_000) // in 2001

// instant formats an instant of a trace that ends at last.
func instant(i, last bucket.Instant) string {
	if last < dateFrom {
		return string(api.AppendMicros(nil, int64(i))) + " s"
	}
	return i.Time().Format("2006-01-02 15:04:05.999999Z")
}

// within formats an instant of such requests: without the date, where all are on one
// day.
func within(i bucket.Instant, requests span) string {
	text := instant(i, requests.last)
	if requests.last < dateFrom || requests.first < 0 || requests.first/day != requests.last/day {
		return text
	}
	_, clock, _ := strings.Cut(text, " ")
	return clock
}

const day = 24 * 3600 * second

// lasting formats a length of time in microseconds for people.
func lasting(micros bucket.Instant) string {
	if micros > bucket.Instant(bucket.Never/time.Microsecond) {
		return string(api.AppendMicros(nil, int64(micros))) + " s"
	}
	return prose.Duration(time.Duration(micros) * time.Microsecond)
}

// percent formats n of all, rounded to two decimals: only all of them are 100 %,
// and only none of them are 0 %.
func percent(n, all int64) string {
	if all == 0 {
		return "-"
	}
	parts := int64(math.Round(float64(n) / float64(all) * 10_000))
	switch {
	case n > 0 && parts == 0:
		return "< 0.01 %"
	case n < all && parts == 10_000:
		return "> 99.99 %"
	}
	return fmt.Sprintf("%d.%02d %%", parts/100, parts%100)
}

// describeTrace says which requests there were.
func describeTrace(b *strings.Builder, screen Screen, name, format string, requests span, o *order) {
	fmt.Fprintf(b, "trace     %s, %s, %s", screen.line(name), format, prose.Count(requests.count, "request"))
	if requests.count == 0 {
		b.WriteString("\n")
		return
	}
	fmt.Fprintf(b, " in %s\n", lasting(requests.last-requests.first))
	fmt.Fprintf(b, "from      %s\nto        %s\n", instant(requests.first, requests.last), instant(requests.last, requests.last))
	if text := o.warning(requests.count); text != "" {
		for _, line := range screen.wrap("warning: " + text) {
			b.WriteString(screen.paint(line, red) + "\n")
		}
	}
	b.WriteString("\n")
}
