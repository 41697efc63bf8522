// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/internal/follow"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// settleTime is the age after which a modification time identifies a version of a file. File systems have coarse
// timestamps, so a file can change twice with the same one.
const settleTime = 3 * time.Second

// A fileSource loads the policy from a file and caches its last contents.
type fileSource struct {
	path     string
	interval time.Duration // polling interval; 0: only on request
	opts     policy.Options
	log      *slog.Logger
	tell     func(error) // receives the result of each change
	keyFiles []string    // public keys for the signature of the policy

	keys       policysign.Keys   // from keyFiles; if empty, policies need no signature
	prices     priceFile         // that the policy names
	active     activeFile        // the next policy must not be older
	info       fs.FileInfo       // from the last read
	settled    bool              // info identifies the version that was read
	digest     [sha256.Size]byte // SHA-256 of the last contents, valid or not
	refused    error             // why the last contents are not active
	unreadable bool              // the last read failed
	loaded     bool              // load has returned
}

func (s *fileSource) name() string { return s.path }

func (s *fileSource) load(context.Context) (*policy.Matcher, error) {
	if _, err := os.Stat(s.path); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	var err error
	if s.keys, err = policysign.ReadKeys(s.keyFiles...); err != nil {
		return nil, fmt.Errorf("policy key: %w", err)
	}
	data, err := s.read()
	if err != nil {
		return nil, err
	}
	s.loaded = true
	m, err := s.parse(data)
	if err == nil {
		s.setActive(m)
	}
	return m, err
}

// parse compiles the policy, with the prices of the file that it names.
func (s *fileSource) parse(data []byte) (*policy.Matcher, error) {
	s.prices.policy, s.prices.keys, s.prices.path = s.path, s.keys, ""
	opts := s.opts
	opts.Prices = s.prices.load
	return policyyaml.Parse(s.path, data, opts)
}

func (s *fileSource) setActive(m *policy.Matcher) {
	s.active = activeFile{m.Version(), s.digest}
	if p := m.Prices(); p != nil {
		s.prices.oldest = p.Date()
	}
}

func (s *fileSource) close() {}

func (s *fileSource) follower(apply func(*policy.Matcher) error) follower {
	return fileFollower{&follow.Loop{
		Interval: s.interval,
		Read:     func(_ context.Context, forced bool) (bool, error) { return s.reloadChanged(forced, apply) },
		Report:   s.report,
	}}
}

type fileFollower struct{ loop *follow.Loop }

func (f fileFollower) run(ctx context.Context)          { f.loop.Run(ctx) }
func (f fileFollower) reload(ctx context.Context) error { return f.loop.Force(ctx) }

// read returns the file's contents after checking the signature if there are keys. It resolves the path again each
// time, so that it notices renames and swapped symbolic links.
func (s *fileSource) read() ([]byte, error) {
	info, err := os.Stat(s.path) // before the contents, so that a later change is noticed
	if err != nil {
		return nil, err
	}
	if s.loaded && !info.Mode().IsRegular() && !info.IsDir() { // a pipe can be read only once, at startup
		return nil, fmt.Errorf("%s: no longer a regular file", s.path)
	}
	data, err := policyyaml.Read(s.path)
	if err != nil {
		return nil, err
	}
	if len(s.keys) > 0 {
		if err := s.keys.Check(s.path, data); err != nil {
			return nil, err
		}
	}
	s.info, s.digest = info, sha256.Sum256(data)
	s.settled = time.Since(info.ModTime()) > settleTime
	return data, nil
}

// reloadChanged activates the policy if its file has changed since the last read, or if forced is true. It returns
// an error if the current contents are not active.
func (s *fileSource) reloadChanged(forced bool, apply func(*policy.Matcher) error) (changed bool, err error) {
	if !forced && s.isUnchanged() {
		return false, s.refused
	}
	before := s.digest
	data, err := s.read()
	if s.unreadable = err != nil; s.unreadable {
		return false, err
	}
	if s.digest == before && !s.prices.hasChanged() && !forced {
		return false, s.refused
	}
	m, err := s.parse(data)
	if err == nil {
		err = s.active.admits(m.Version(), s.digest)
	}
	if err == nil {
		err = apply(m)
	}
	if s.refused = err; err != nil {
		return true, err
	}
	s.setActive(m)
	attrs := []any{"file", s.path, "rules", len(m.Rules()), "version", m.Version(), "digest", s.shortDigest()}
	if p := m.Prices(); p != nil {
		attrs = append(attrs, "prices", p.String())
	}
	s.log.Info("policy reloaded", attrs...)
	return true, nil
}

// report logs and counts the results of reloads.
func (s *fileSource) report(news follow.News, err error) {
	switch {
	case s.unreadable && errors.Is(err, policysign.ErrSignature):
		s.log.Error("policy not signed, old policy stays active", "file", s.path, "err", err)
	case s.unreadable:
		s.log.Error("cannot read policy, old policy stays active", "file", s.path, "err", err)
	case err != nil:
		s.logErrors(err)
	case news == follow.NewsRecovered:
		s.log.Info("policy file readable again, unchanged", "file", s.path)
	}
	s.tell(err)
}

// isUnchanged reports whether the status of the files alone proves that the contents are the same as in the last read.
func (s *fileSource) isUnchanged() bool {
	return s.settled && !s.unreadable && isSameVersion(s.path, s.info) && s.prices.isUnchanged()
}

// logErrors logs each error of an invalid file.
func (s *fileSource) logErrors(err error) {
	mistakes, ok := errors.AsType[policyyaml.Errors](err)
	if !ok {
		event := "policy invalid, old policy stays active"
		if errors.Is(err, errFellBehind) {
			event = "policy rejected, old policy stays active"
		}
		s.log.Error(event, "file", s.path, "err", err)
		return
	}
	s.log.Error("policy invalid, old policy stays active", "file", s.path, "errors", len(mistakes))
	logPolicyErrors(s.log, mistakes)
}

func logPolicyErrors(log *slog.Logger, mistakes policyyaml.Errors) {
	for _, m := range mistakes[:min(len(mistakes), maxLoggedErrors)] {
		m.Value = loggable(m.Path, m.Value)
		log.Error("policy error", "err", m.String())
	}
}

// shortDigest returns an identifier of the contents last read.
func (s *fileSource) shortDigest() string { return hex.EncodeToString(s.digest[:6]) }

// errFellBehind is the error of a policy that may be older than the active one. Signatures do not prevent a
// rollback, because old policies are signed, too.
var errFellBehind = errors.New("bundle_version must increase")

type activeFile struct {
	version int64 // bundle_version; 0 for none
	digest  [sha256.Size]byte
}

// admits returns an error if a file must not replace the active one. The same contents are always valid. If the
// active policy has no bundle_version, every file is valid.
func (f activeFile) admits(version int64, digest [sha256.Size]byte) error {
	switch {
	case f.version == 0 || digest == f.digest || version > f.version:
		return nil
	case version == 0:
		return fmt.Errorf("%w: the file has none, and %d is active", errFellBehind, f.version)
	case version == f.version:
		return fmt.Errorf("%w: %d is active with other contents", errFellBehind, version)
	}
	return fmt.Errorf("%w: it is %d, and %d is active; to roll back, publish the old rules with a higher one", errFellBehind, version, f.version)
}
