// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
)

// logTime is the time layout of access logs. All times have its length.
const logTime = "02/Jan/2006:15:04:05 -0700"

// A logClock parses times and caches the last one, because adjacent lines often have the same time. The zero value
// is ready to use.
type logClock struct {
	text string
	at   bucket.Instant
}

// cut returns the time of a line and the rest of the line from the quote of the request on. address is the length
// of the first field. The user field may contain spaces and brackets but no unescaped quote, so the first `] "`
// ends the time.
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

// holdsAt reports whether the cached time also applies to this line. start is the offset after the first bracket,
// and end the offset of the last.
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
	c.text, c.at = strings.Clone(text), at // a substring would keep the whole read in memory
	return at, nil
}
