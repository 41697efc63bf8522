// SPDX-License-Identifier: Apache-2.0

// Package bundle follows a signed policy at an https:// address, so that many servers can share one source.
//
// A [Follower] polls the address with If-None-Match. It activates a new bundle only if its signature is valid, its
// bundle_version is higher, and it compiles. It saves the last valid bundle and its signature in a file. A server
// starts from this file while the source is down, and never goes back to an older bundle.
//
// The signature of https://host/policy.yaml is at https://host/policy.yaml.sig: see package policysign. If the
// bundle changes between the two requests, the signature is invalid. The follower then retries both requests once
// before it reports a failure.
package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/internal/follow"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

const (
	// maxBackoff bounds the random part of the wait after a failure.
	maxBackoff = 5 * time.Minute

	// spread is the random fraction of the interval, which keeps servers from polling at the same time.
	spread = 0.1

	digestBytes = 6
)

// ErrOlder is the error of a bundle that is not newer than the active one. Signatures do not prevent a rollback,
// because old bundles are signed, too.
var ErrOlder = errors.New("bundle_version must increase")

// Config configures a [Follower]. CAFile and Options are optional.
type Config struct {
	URL      *url.URL        // from [ParseURL]
	CAFile   string          // CA certificates in PEM; empty: system roots
	Keys     policysign.Keys // at least one
	StateDir string          // directory for the last valid bundle
	Interval time.Duration   // between two polls; 0: poll only on request
	Options  policy.Options  // for compiling bundles

	// Tell receives the result of every change: nil, or the reason for rejecting a bundle. The log omits values of
	// an invalid bundle, because they may be keys of clients.
	Tell func(error)

	Log *slog.Logger
}

// A Follower follows one source. All methods except Status must be called from one goroutine.
type Follower struct {
	config  Config
	fetcher *fetcher
	shown   string            // the address without credentials
	path    string            // file of the last valid bundle
	tag     string            // ETag of the last contents, active or rejected
	refused error             // why the last contents are not active
	digest  [sha256.Size]byte // of rejected contents, for sources without ETags
	looks   follow.Memory
	active  *savedBundle // nil before Load

	mu     sync.Mutex // guards status
	status Status
}

// Status describes the state of a follower.
type Status struct {
	Source    string    // the address without credentials
	Version   int64     // bundle_version of the active bundle
	Digest    string    // prefix of its SHA-256, in hexadecimal
	Confirmed time.Time // when the source last served the active bundle
	FromDisk  bool      // loaded from disk and not confirmed by the source since the start

	Failures int // failed polls since the last response of the source

	Applied, Unchanged, Refused, Failed uint64 // polls by result
}

// New returns a follower without sending a request.
func New(c Config) (*Follower, error) {
	if len(c.Keys) == 0 {
		return nil, errors.New("a bundle needs a signature: name the public key")
	}
	if info, err := os.Stat(c.StateDir); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("state directory: %s is not a directory", c.StateDir)
	}
	fetcher, err := newFetcher(c.URL, c.CAFile, c.Keys)
	if err != nil {
		return nil, err
	}
	shown := Shown(c.URL)
	return &Follower{config: c, fetcher: fetcher, shown: shown, path: filepath.Join(c.StateDir, StateName), status: Status{Source: shown}}, nil
}

// Load returns the first policy. It comes from the source or, if the source is down or serves an invalid bundle,
// from the last valid bundle on disk. Load fails if neither is available.
func (f *Follower) Load(ctx context.Context) (*policy.Matcher, error) {
	last, m := f.loadState()
	tag := ""
	if last != nil {
		f.setActive(last, m.Version(), true)
		tag = last.ETag
	}
	got, err := f.fetcher.fetch(ctx, tag)
	if err == nil && got == nil {
		f.confirm()
		return m, nil
	}
	var next *policy.Matcher
	if err == nil {
		next, err = f.parse(got)
	}
	switch {
	case err == nil:
		f.activate(got, next)
		return next, nil
	case last == nil:
		return nil, err
	}
	f.looks.Note(false, err)
	f.fail(err)
	f.config.Log.Warn("policy bundle loaded from disk, source has no valid bundle", "source", f.shown, "version", m.Version(), "confirmed", last.Confirmed, "err", loggable(err))
	return m, nil
}

// loadState returns the bundle on disk, or nil if it is missing or invalid.
func (f *Follower) loadState() (*savedBundle, *policy.Matcher) {
	k, err := readState(f.path, sourceID(f.shown), f.config.Keys)
	if err == nil && k == nil {
		return nil, nil
	}
	var m *policy.Matcher
	if err == nil {
		m, err = policyyaml.Parse(f.shown, k.Bundle, f.config.Options)
	}
	if err != nil {
		f.config.Log.Warn("policy bundle on disk invalid", "file", f.path, "err", loggable(err))
		return nil, nil
	}
	return k, m
}

// parse compiles a bundle. It rejects bundles that are not newer than the active one.
func (f *Follower) parse(got *fetched) (*policy.Matcher, error) {
	m, err := policyyaml.Parse(f.shown, got.data, f.config.Options)
	if err != nil {
		return nil, err
	}
	active := f.Status()
	switch v := m.Version(); {
	case v == 0:
		return nil, fmt.Errorf("%s: %w: the bundle has none", f.shown, ErrOlder)
	case f.active == nil || v > active.Version || bytes.Equal(got.data, f.active.Bundle):
		return m, nil
	case v == active.Version:
		return nil, fmt.Errorf("%s: %w: %d is active with other contents", f.shown, ErrOlder, v)
	default:
		return nil, fmt.Errorf("%s: %w: it is %d, and %d is active; to roll back, publish the old rules with a higher one", f.shown, ErrOlder, v, active.Version)
	}
}

// Poll polls the source once and activates a new bundle by calling apply. It returns an error if there may be a
// newer bundle that is not active. If asked is true, an administrator requested the poll, and Poll retries a
// rejected bundle.
func (f *Follower) Poll(ctx context.Context, apply func(*policy.Matcher) error, asked bool) error {
	tag := f.tag
	if asked && f.refused != nil {
		tag = ""
	}
	got, err := f.fetcher.fetch(ctx, tag)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		f.recordFailure(err)
		return err
	}
	if f.looks.Note(got != nil, nil) == follow.NewsRecovered {
		f.config.Log.Info("policy bundle source reachable", "source", f.shown)
	}
	switch {
	case f.refused != nil && (got == nil || !asked && sha256.Sum256(got.data) == f.digest):
		f.count(func(s *Status) { s.Failures, s.Unchanged = 0, s.Unchanged+1 })
		return f.refused
	case got == nil || bytes.Equal(got.data, f.active.Bundle):
		if got != nil {
			f.tag = got.etag
		}
		if f.refused != nil { // the source serves the active bundle again
			f.refused = nil
			f.config.Tell(nil)
		}
		f.confirm()
		return nil
	}
	return f.replace(got, apply)
}

func (f *Follower) replace(got *fetched, apply func(*policy.Matcher) error) error {
	m, err := f.parse(got)
	if err == nil {
		err = apply(m)
	}
	f.tag, f.refused = got.etag, err
	f.config.Tell(err)
	if err != nil {
		f.digest = sha256.Sum256(got.data)
		f.count(func(s *Status) { s.Failures, s.Refused = 0, s.Refused+1 })
		f.config.Log.Error("policy bundle rejected, old bundle stays active", "source", f.shown, "active", f.Status().Version, "err", loggable(err))
		return err
	}
	f.activate(got, m)
	s := f.Status()
	f.config.Log.Info("policy bundle applied", "source", f.shown, "version", s.Version, "digest", s.Digest, "rules", len(m.Rules()))
	return nil
}

// loggable removes policy values from an error, because they may be keys of clients.
func loggable(err error) error {
	if mistakes, ok := errors.AsType[policyyaml.Errors](err); ok {
		return fmt.Errorf("the bundle has %d errors", len(mistakes))
	}
	return err
}

// recordFailure records a poll without a verified bundle.
func (f *Follower) recordFailure(err error) {
	unsigned := errors.Is(err, policysign.ErrSignature)
	if f.looks.Note(false, err) == follow.NewsFailed {
		msg := "policy bundle source unreachable, last bundle stays active"
		if unsigned {
			msg = "policy bundle rejected, invalid signature"
		}
		f.config.Log.Error(msg, "source", f.shown, "active", f.Status().Version, "err", err)
		if unsigned {
			f.config.Tell(err)
		}
	}
	f.fail(err)
}

func (f *Follower) fail(err error) {
	f.count(func(s *Status) {
		s.Failures++
		if errors.Is(err, policysign.ErrSignature) {
			s.Refused++
		} else {
			s.Failed++
		}
	})
}

// activate activates a bundle and saves it to disk. It only logs a failure to save.
func (f *Follower) activate(got *fetched, m *policy.Matcher) {
	k := &savedBundle{Source: sourceID(f.shown), ETag: got.etag, Confirmed: time.Now().UTC(), Signature: got.signature, Bundle: got.data}
	if err := k.write(f.path); err != nil {
		f.config.Log.Error("policy bundle not saved, a restart needs the source", "file", f.path, "err", err)
	}
	f.setActive(k, m.Version(), false)
	f.count(func(s *Status) { s.Applied, s.Failures = s.Applied+1, 0 })
}

func (f *Follower) setActive(k *savedBundle, version int64, fromDisk bool) {
	f.active, f.tag, f.refused = k, k.ETag, nil
	f.count(func(s *Status) {
		s.Version, s.Digest, s.Confirmed, s.FromDisk = version, digestOf(k.Bundle), k.Confirmed, fromDisk
	})
}

func (f *Follower) confirm() {
	f.count(func(s *Status) {
		s.Confirmed, s.FromDisk, s.Failures, s.Unchanged = time.Now().UTC(), false, 0, s.Unchanged+1
	})
}

func (f *Follower) count(change func(*Status)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.status)
}

// Status returns the current status. It is safe for concurrent use.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// A Request asks a follower to poll immediately. Done, if not nil, receives the result and must be buffered.
type Request struct{ Done chan<- error }

// Follow polls until ctx ends, about once per interval and less often while the source fails.
func (f *Follower) Follow(ctx context.Context, apply func(*policy.Matcher) error, asked <-chan Request) {
	for {
		var due <-chan time.Time
		if f.config.Interval > 0 {
			due = time.After(f.wait(rand.Float64))
		}
		select {
		case <-ctx.Done():
			return
		case <-due:
			_ = f.Poll(ctx, apply, false) // Poll logs errors
		case r := <-asked:
			err := f.Poll(ctx, apply, true)
			if r.Done != nil {
				r.Done <- err
			}
		}
	}
}

// wait returns the time until the next poll. random returns numbers from 0 to 1. After failures, wait adds random
// exponential backoff, so that many servers do not overload a recovering source.
func (f *Follower) wait(random func() float64) time.Duration {
	every, failures := f.config.Interval, f.Status().Failures
	if failures == 0 {
		return time.Duration(float64(every) * (1 - spread + 2*spread*random()))
	}
	most := every
	for range failures - 1 {
		if most *= 2; most >= maxBackoff {
			most = maxBackoff
			break
		}
	}
	return every + time.Duration(float64(min(most, maxBackoff))*random())
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:digestBytes])
}
