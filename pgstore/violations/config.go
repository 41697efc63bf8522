// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// DefaultRetention is how long rows are kept unless [Config.Retention] says.
const DefaultRetention = 30 * 24 * time.Hour

// Other defaults of a [Config].
const (
	defaultSchema        = "mete"
	defaultUserAttribute = "jwt:sub"
	defaultWindow        = time.Second
	defaultMaxRows       = 200
	defaultMaxQueue      = 1 << 14
	defaultTimeout       = 5 * time.Second
)

// Bounds of [Config.Retention]. What lies outside of them is refused.
const (
	MinRetention = time.Hour
	MaxRetention = 100 * 365 * 24 * time.Hour
)

// Bounds of a [Config].
const (
	minWindow = time.Millisecond
	maxWindow = time.Minute
	maxRows   = 100_000
	maxQueue  = 1 << 20
)

// Config are the settings of a [Recorder] and of a [Reader]. It is sound with a
// Key, or with Raw.
type Config struct {
	// Schema is where the table is: see pgstore.Migrate. Empty is "mete".
	Schema string

	// Key keys the hashes of keys and users. Who writes and who asks need the same.
	Key []byte

	// Raw stores keys, users and addresses as they are. Key is not needed then.
	Raw bool

	// UserAttribute names the attribute that says who the user is. Empty is "jwt:sub".
	UserAttribute string

	// NoEndpoints leaves out the method and the path.
	NoEndpoints bool

	// Retention is how long rows are kept, at least: they leave by whole days. 0 is
	// [DefaultRetention].
	Retention time.Duration

	// Window is the time between two writes, between a millisecond and a minute. 0 is
	// a second.
	Window time.Duration

	// MaxRows bounds the rows that are written in a window, and MaxQueue those that
	// wait to be. 0 are 200 and 16384, the most 100000 and 1048576. A row takes up to
	// 3 KiB of memory, most far less.
	MaxRows, MaxQueue int

	// Timeout is the longest that one write, or one question, may take. 0 is 5 s.
	Timeout time.Duration

	// Node names this process in the rows it writes. Empty is the host's name.
	Node string

	// Logger is told when writing begins to fail and when it works again, and when
	// keys begin to be left out. Nil is none.
	Logger *slog.Logger

	// Now, if set, takes the place of the database's clock, for tests.
	Now func() bucket.Instant
}

// checked returns c with its defaults.
func (c Config) checked() (Config, error) {
	if c.Schema == "" {
		c.Schema = defaultSchema
	}
	if c.UserAttribute == "" {
		c.UserAttribute = defaultUserAttribute
	}
	if c.Node == "" {
		c.Node, _ = os.Hostname() // it is not worth an error
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	for _, f := range []struct {
		name             string
		value            *time.Duration
		least, most, def time.Duration
	}{
		{"retention", &c.Retention, MinRetention, MaxRetention, DefaultRetention},
		{"window", &c.Window, minWindow, maxWindow, defaultWindow},
		{"timeout", &c.Timeout, time.Millisecond, math.MaxInt64, defaultTimeout},
	} {
		if *f.value == 0 {
			*f.value = f.def
		}
		if *f.value < f.least || *f.value > f.most {
			return c, fmt.Errorf("%s %v: must be between %v and %v, or 0", f.name, *f.value, f.least, f.most)
		}
	}
	for _, f := range []struct {
		name      string
		value     *int
		most, def int
	}{
		{"MaxRows", &c.MaxRows, maxRows, defaultMaxRows},
		{"MaxQueue", &c.MaxQueue, maxQueue, defaultMaxQueue},
	} {
		if *f.value == 0 {
			*f.value = f.def
		}
		if *f.value < 0 || *f.value > f.most {
			return c, fmt.Errorf("%s %d: must be between 1 and %d, or 0", f.name, *f.value, f.most)
		}
	}
	if !c.Raw && len(c.Key) == 0 {
		return c, errors.New("key is required, unless Raw is set")
	}
	c.Key = append([]byte(nil), c.Key...)
	if _, err := policy.ParseAttribute(c.UserAttribute); err != nil {
		return c, fmt.Errorf("user attribute: %w", err)
	}
	return c, nil
}
