// SPDX-License-Identifier: Apache-2.0

// Package wire connects a comparison with a limiter in another process. The process gets a [Setup] as its argument, one
// [Request] per line of its input, and writes one [Response] per line. Its first response, to request 0, has its version.
// The package has no dependencies, because programs of other modules use it too.
package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// A Limit admits Capacity tokens per Period.
type Limit struct {
	Capacity int
	Period   time.Duration // in nanoseconds on the wire
}

// Every returns the time in which one token refills.
func (l Limit) Every() time.Duration { return l.Period / time.Duration(l.Capacity) }

// A Setup describes a limiter.
type Setup struct {
	Contender string
	Limits    []Limit
	MaxKeys   int // bounds the keys in memory; 0 is the limiter's default

	Redis     string   // host:port, if not empty
	Sentinels []string // host:port of each, if Redis is behind sentinels
	Master    string   // its name for the sentinels
	Postgres  string   // URL
}

// A Request takes one token for each key that is not empty: Keys[i] has Limits[i]. With Limits, it changes the limits instead.
type Request struct {
	ID     int
	Keys   []string
	Limits []Limit
}

// A Response is the answer to the request with its ID.
type Response struct {
	ID      int
	Allowed bool
	Retry   time.Duration // how long a denied caller shall wait, or [NoRetry]
	Error   string
	Version string // of the contender, in the first response
}

// NoRetry is the wait that a limiter does not tell.
const NoRetry time.Duration = -1

// ErrUnsupported is the error of a limiter whose limits cannot change.
var ErrUnsupported = errors.New("unsupported")

// A Limiter is safe for concurrent use.
type Limiter interface {
	Take(ctx context.Context, keys []string) (allowed bool, retry time.Duration, err error)
	Change(limits []Limit) error
}

// ReadSetup returns the setup in the program's first argument.
func ReadSetup() (s Setup, err error) {
	if len(os.Args) != 2 {
		return s, errors.New("usage: PROGRAM SETUP")
	}
	return s, json.Unmarshal([]byte(os.Args[1]), &s)
}

// Serve answers the requests of in concurrently until it ends.
func Serve(l Limiter, version string, in io.Reader, out io.Writer) error {
	var mu sync.Mutex // guards out
	encoder := json.NewEncoder(out)
	write := func(r Response) error {
		mu.Lock()
		defer mu.Unlock()
		return encoder.Encode(r)
	}
	if err := write(Response{Version: version}); err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("request %q: %w", lines.Text(), err)
		}
		running.Go(func() { _ = write(answer(l, r)) })
	}
	return lines.Err()
}

func answer(l Limiter, r Request) Response {
	response := Response{ID: r.ID, Retry: NoRetry}
	var err error
	if len(r.Limits) > 0 {
		err = l.Change(r.Limits)
	} else {
		response.Allowed, response.Retry, err = l.Take(context.Background(), r.Keys)
	}
	if err != nil {
		response.Allowed, response.Error = false, err.Error()
	}
	return response
}

// Single is a limiter that takes from one key at a time. For several keys, callers ask it in turn until it denies one,
// as the usual chain of middleware does.
type Single func(ctx context.Context, limit int, key string) (allowed bool, retry time.Duration, err error)

// TakeEach takes from each key in turn.
func (s Single) TakeEach(ctx context.Context, keys []string) (bool, time.Duration, error) {
	for i, key := range keys {
		if key == "" {
			continue
		}
		if allowed, retry, err := s(ctx, i, key); err != nil || !allowed {
			return false, retry, err
		}
	}
	return true, NoRetry, nil
}
