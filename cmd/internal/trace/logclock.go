// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
)

// logTime is the time of access logs. All of them have its length.
const logTime = "02/Jan/2006:15:04:05 -0700"

// A logClock reads times. Neighboring lines mostly share theirs, so it
// remembers the last one. Its zero value is ready for use.
type logClock struct {
	text string
	at   bucket.Instant
}

// cut returns the time of a line whose address has that many bytes, and what
// follows the time, from the quote of the request on. The user before it may hold
// spaces and brackets, but no quote that is not escaped; so the first `] "` ends
// the time.
func (c *logClock) cut(line string, address int) (at bucket.Instant, rest string, err error) {
	start := strings.IndexByte(line, '[') + 1
	end := start + len(logTime)
	if c.holdsAt(line, start, end) {
		return c.at, line[end+2:], nil
	}
	end = strings.Index(line, `] "`)
	start = end - len(logTime)
	if start < address+2 || line[start-1] != '[' || line[start-2] != ' ' {
		return 0, "", errLog
	}
	at, err = c.parse(line[start:end])
	return at, line[end+2:], err
}

// holdsAt reports whether the time of the line before is that of this one as well,
// between start and end, where start stands behind the first bracket.
func (c *logClock) holdsAt(line string, start, end int) bool {
	return start > 1 && len(line) > end+2 && line[start:end] == c.text && line[end:end+3] == `] "` &&
		line[start-2] == ' ' && strings.IndexByte(line[:start], ']') < 0
}

func (c *logClock) parse(text string) (bucket.Instant, error) {
	t, err := time.Parse(logTime, text)
	if err != nil {
		return 0, fmt.Errorf("%w; %q is not a time", errLog, text)
	}
	at := bucket.At(t)
	if at < 0 || at >= maxInstant {
		return 0, fmt.Errorf("the time %q is not between 1970 and 2255", text)
	}
	c.text, c.at = strings.Clone(text), at // or the lines around it stay in memory
	return at, nil
}
