// SPDX-License-Identifier: Apache-2.0

// Package loadtest measures the decisions per second and the latency of a store or a
// server. It is mete bench.
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

// Options are the inputs of [Run].
type Options struct {
	// Target is the URL of a store, or of a server: http or https.
	Target string

	// Duration bounds the run. 0 is no bound where there is a Count, and
	// [DefaultDuration] where there is none.
	Duration time.Duration

	// Count, above 0, bounds the decisions.
	Count int64

	// Concurrency is the number of calls at a time. 0 is [DefaultConcurrency].
	Concurrency int

	// Keys is the number of different clients. 0 is [DefaultKeys].
	Keys int

	// Rate, above 0, makes an open loop: so many decisions are due per second. The
	// latency of a decision counts from the moment when it is due. A slow answer then
	// delays the decisions behind it in the figures, too. 0 is a closed loop.
	Rate float64

	// Limit is the limit of each key in a store. Empty is [DefaultLimit], which denies
	// hardly anything. A server decides by its policy.
	Limit string

	// Attributes are the attributes of the requests to a server. {n} in a value stands for the
	// number of the key. Nil is an address and an API key of each client.
	Attributes map[string]string

	// HTTP and Token reach a server. A nil HTTP is a client with a timeout.
	HTTP  *http.Client
	Token string

	// Notes has warnings, and Progress, if not nil, is a terminal for a progress bar.
	Notes, Progress io.Writer
}

// A target decides.
type target interface {
	// take makes one decision about a key. It is safe for concurrent use.
	take(ctx context.Context, key int) (allowed bool, err error)

	// close removes the keys that were used, and disconnects.
	close(ctx context.Context) error

	// note words the load on the target, for a warning.
	note() string
}

// cleanTimeout bounds the removal of the keys.
const cleanTimeout = time.Minute

// Run makes decisions until the time or the count is reached, or ctx is done, and returns
// the figures. The error means that nothing could be measured, or that keys are left.
// Decisions that fail are figures, and no error.
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
	// The first decision is not measured: it connects. Its error ends the run.
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

// load words the size of the load.
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

// complete fills in the defaults and checks the options. The error joins all errors.
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

// limit is the limit of each key in a store. A bucket holds what refills in the time of
// the rate.
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

// ownName is a name that no other run has.
func ownName() string { return "bench-" + rand.Text()[:8] }
