// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
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

func (c *logClock) parse(text string) (bucket.Instant, error) {
	if text == c.text {
		return c.at, nil
	}
	t, err := time.Parse(logTime, text)
	if err != nil {
		return 0, fmt.Errorf("%w; %q is not a time", errLog, text)
	}
	at := bucket.At(t)
	if at < 0 || at >= maxInstant {
		return 0, fmt.Errorf("the time %q is not between 1970 and 2255", text)
	}
	c.text, c.at = text, at
	return at, nil
}
