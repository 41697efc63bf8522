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

// DefaultRetention is the default of [Config.Retention].
const DefaultRetention = 30 * 24 * time.Hour

const (
	defaultSchema        = "mete"
	defaultUserAttribute = "jwt:sub"
	defaultWindow        = time.Second
	defaultMaxRows       = 200
	defaultMaxQueue      = 1 << 14
	defaultTimeout       = 5 * time.Second
)

// Bounds of [Config.Retention]. Other values are errors.
const (
	MinRetention = time.Hour
	MaxRetention = 100 * 365 * 24 * time.Hour
)

const (
	minWindow = time.Millisecond
	maxWindow = time.Minute
	maxRows   = 100_000
	maxQueue  = 1 << 20
)

// Config holds the settings of a [Recorder] and of a [Reader]. A Recorder requires Key or Raw; everything else has
// a default.
type Config struct {
	// Schema contains the table: see pgstore.Migrate. Empty is "mete".
	Schema string

	// Key is the key of the hashes of keys and users. Recorders and readers must use the same key.
	Key []byte

	// Raw stores keys, users and addresses unhashed. Key is not needed then.
	Raw bool

	// UserAttribute is the attribute with the user's identity. Empty is "jwt:sub".
	UserAttribute string

	// NoEndpoints disables the storage of methods and paths.
	NoEndpoints bool

	// Retention is the minimum lifetime of rows, which are deleted by whole days. 0 is [DefaultRetention].
	Retention time.Duration

	// Window is the interval between two writes, between a millisecond and a minute. 0 is a second.
	Window time.Duration

	// MaxRows bounds the rows per window, and MaxQueue the waiting rows. 0 selects 200 and 16384; the maximum is
	// 100000 and 1048576. A row takes up to 3 KiB of memory, but usually far less.
	MaxRows, MaxQueue int

	// Timeout bounds one write or one query. 0 is 5 s.
	Timeout time.Duration

	// Node is the name of this process in its rows. Empty is the host name.
	Node string

	// Logger receives an event when writes begin to fail or work again, and when denied keys overflow. Nil logs
	// nothing.
	Logger *slog.Logger

	// Now, if set, replaces the database's clock in tests.
	Now func() bucket.Instant
}

func (c Config) withDefaults() (Config, error) {
	if c.Schema == "" {
		c.Schema = defaultSchema
	}
	if c.UserAttribute == "" {
		c.UserAttribute = defaultUserAttribute
	}
	if c.Node == "" {
		c.Node, _ = os.Hostname() // the name is optional
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
