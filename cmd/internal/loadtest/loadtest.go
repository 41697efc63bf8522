// SPDX-License-Identifier: Apache-2.0

// Package loadtest implements mete bench. It measures the decisions per second and the latency of a store or a
// server.
package loadtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/metehq/mete/bucket"
)

// Defaults and bounds of the options.
const (
	DefaultDuration    = 10 * time.Second
	DefaultConcurrency = 64
	DefaultKeys        = 10_000
	DefaultLimit       = "1000000/1s"

	maxConcurrency = 1024
	maxKeys        = 1_000_000
	maxRate        = 10_000_000
	maxDuration    = time.Hour
)

// Options configure [Run].
type Options struct {
	// Target is the URL of a store, or of a server: http or https.
	Target string

	// Duration bounds the run. 0 means [DefaultDuration], or no bound if Count is set.
	Duration time.Duration

	// Count bounds the number of decisions if it is positive.
	Count int64

	// Concurrency is the number of concurrent calls. 0 means [DefaultConcurrency].
	Concurrency int

	// Keys is the number of different clients. 0 means [DefaultKeys].
	Keys int

	// Rate, if positive, is the number of decisions per second in an open loop. The latency of a decision then
	// counts from its due time, so that a slow response delays later decisions as well. 0 is a closed loop.
	Rate float64

	// Limit is the limit of each key in a store. Empty means [DefaultLimit], which rarely denies. A server uses
	// its own policy.
	Limit string

	// Attributes are the attributes of the requests to a server. {n} in a value is replaced by the number of the
	// key. Nil means a different address and API key for each client.
	Attributes map[string]string

	// HTTP and Token are for a server. A nil HTTP means a client with a timeout.
	HTTP  *http.Client
	Token string

	// Notes receives warnings. Progress, if not nil, is a terminal for a progress bar.
	Notes, Progress io.Writer
}

type target interface {
	// take makes one decision about a key. It is safe for concurrent use.
	take(ctx context.Context, key int) (allowed bool, err error)

	// close removes the keys of the run and disconnects.
	close(ctx context.Context) error

	// note describes the load on the target for a warning.
	note() string
}

// cleanTimeout bounds the removal of keys.
const cleanTimeout = time.Minute

// Run makes decisions until a bound is reached or ctx ends, and returns the results. It returns an error if it
// could not measure anything or could not remove its keys. Failed decisions are part of the results.
func Run(ctx context.Context, o Options) (Report, error) {
	if err := o.complete(); err != nil {
		return Report{}, err
	}
	t, err := open(ctx, o)
	if err != nil {
		return Report{}, err
	}
	fmt.Fprintf(o.Notes, "mete bench: %s; %s\n", o.load(), t.note())
	l := newLoad(o, t)
	// The first decision connects and is not measured. If it fails, the run ends.
	if _, err = t.take(context.WithoutCancel(ctx), 0); err == nil {
		l.run(ctx)
	}
	cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	if err := errors.Join(err, t.close(cleaning)); err != nil {
		return Report{}, err
	}
	return l.report(), nil
}

// load describes the size of the load.
func (o *Options) load() string {
	s := fmt.Sprintf("up to %d calls at a time", o.Concurrency)
	if o.Rate > 0 {
		s = fmt.Sprintf("%g decisions per second, %s", o.Rate, s)
	}
	switch {
	case o.Count > 0 && o.Duration > 0:
		return fmt.Sprintf("%s, for %v or %d decisions", s, o.Duration, o.Count)
	case o.Count > 0:
		return fmt.Sprintf("%s, for %d decisions", s, o.Count)
	}
	return fmt.Sprintf("%s, for %v", s, o.Duration)
}

// complete sets defaults and validates the options. It joins all errors.
func (o *Options) complete() error {
	if o.Duration == 0 && o.Count == 0 {
		o.Duration = DefaultDuration
	}
	if o.Concurrency == 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.Keys == 0 {
		o.Keys = DefaultKeys
	}
	if o.Limit == "" {
		o.Limit = DefaultLimit
	}
	if o.Notes == nil {
		o.Notes = io.Discard
	}
	var errs []error
	within := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	within(o.Duration >= 0 && o.Duration <= maxDuration, "duration: %v must be above 0 and at most %v", o.Duration, maxDuration)
	within(o.Count >= 0, "count: %d must be above 0", o.Count)
	within(o.Concurrency > 0 && o.Concurrency <= maxConcurrency, "concurrency: %d must be between 1 and %d", o.Concurrency, maxConcurrency)
	within(o.Keys > 0 && o.Keys <= maxKeys, "keys: %d must be between 1 and %d", o.Keys, maxKeys)
	within(o.Rate >= 0 && o.Rate <= maxRate, "rate: %g must be above 0 and at most %d", o.Rate, maxRate)
	if _, err := o.limit(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// limit returns the limit of each key in a store. The burst is the number of tokens in the rate.
func (o *Options) limit() (bucket.Limit, error) {
	r, err := bucket.ParseRate(o.Limit)
	if err != nil {
		return bucket.Limit{}, fmt.Errorf("limit: %w", err)
	}
	l, err := bucket.NewLimit(r.Tokens, r)
	if err != nil {
		return bucket.Limit{}, fmt.Errorf("limit: %w", err)
	}
	return l, nil
}

// uniqueName returns a name that no other run uses.
func uniqueName() string { return "bench-" + rand.Text()[:8] }
