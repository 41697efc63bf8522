// SPDX-License-Identifier: Apache-2.0

package geoip

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Bounds and defaults of a [Config].
const (
	// MaxFileBytes bounds an MMDB file, which is read into memory.
	MaxFileBytes = 1 << 30

	// MaxTorExits bounds the addresses in a list of Tor exits.
	MaxTorExits = 1 << 20

	defaultInterval = time.Minute
	minInterval     = 10 * time.Millisecond
	maxInterval     = 24 * time.Hour
)

// Config holds the settings of a [Database]. At least one file is required. One MMDB file may serve both Country and
// ASN.
type Config struct {
	Country string // path of an MMDB file with countries
	ASN     string // path of an MMDB file with numbers of autonomous systems

	// TorExits is the path of a list of Tor exits: an address per line. Empty lines, text after a #, and the lines
	// ExitNode, Published and LastStatus are ignored. The address in a line may follow the word ExitAddress, as in
	// the list of the Tor project.
	TorExits string

	// Interval is the time between two looks at the files, from 10 milliseconds to one day. Zero means a minute. A
	// changed file becomes active as a whole. If it is invalid or missing, the last valid one stays active.
	Interval time.Duration

	// Logger logs active files and errors. It logs no addresses. If nil, nothing is logged.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Interval == 0 {
		c.Interval = defaultInterval
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Country == "" && c.ASN == "" && c.TorExits == "":
		return c, errors.New("geoip: no file: set Country, ASN or TorExits")
	case c.Interval < minInterval || c.Interval > maxInterval:
		return c, fmt.Errorf("geoip: interval is %v: must be between %v and %v", c.Interval, minInterval, maxInterval)
	}
	return c, nil
}
