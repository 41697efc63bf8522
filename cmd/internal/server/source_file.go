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

// settleTime is the age from which a modification time tells two versions of a file apart.
// File systems count it in ticks, and a file can change twice within one.
const settleTime = 3 * time.Second

// A fileSource is the policy file and its last contents.
type fileSource struct {
	path     string
	interval time.Duration // between two looks; 0: only on request
	opts     policy.Options
	log      *slog.Logger
	tell     func(error) // gets the result of each change
	keyFiles []string    // public keys that policies must be signed for

	keys       policysign.Keys   // of keyFiles; none: policies need no signature
	active     activeFile        // the next policy must not be older
	info       fs.FileInfo       // of the file when it was last read
	settled    bool              // info tells this version from a later one
	digest     [sha256.Size]byte // of the contents last read, good or bad
	refused    error             // why the contents last read are not active
	unreadable bool              // the last read failed
	loaded     bool              // load has read the file
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
	m, err := policyyaml.Parse(s.path, data, s.opts)
	if err == nil {
		s.active = activeFile{m.Version(), s.digest}
	}
	return m, err
}

func (s *fileSource) close() {}

func (s *fileSource) follower(apply func(*policy.Matcher) error) follower {
	return fileFollower{&follow.Loop{
		Interval: s.interval,
		Look:     func(_ context.Context, forced bool) (bool, error) { return s.look(forced, apply) },
		Tell:     s.tellNews,
	}}
}

// A fileFollower follows a policy file.
type fileFollower struct{ loop *follow.Loop }

func (f fileFollower) run(ctx context.Context)          { f.loop.Run(ctx) }
func (f fileFollower) reload(ctx context.Context) error { return f.loop.Force(ctx) }

// read returns the file's contents, if they are signed where they must be, and
// remembers what they were. The path is
// resolved anew, so that renames and symbolic links that are swapped are seen.
func (s *fileSource) read() ([]byte, error) {
	info, err := os.Stat(s.path) // before the contents: a change in between is then seen later
	if err != nil {
		return nil, err
	}
	if s.loaded && !info.Mode().IsRegular() && !info.IsDir() { // a pipe can be read once, at the start
		return nil, fmt.Errorf("%s: not a regular file any more", s.path)
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

// look activates the policy if its file has changed since it was last read, or if it is
// forced to. The error is why there may be a policy that is not active.
func (s *fileSource) look(forced bool, apply func(*policy.Matcher) error) (changed bool, err error) {
	if !forced && s.unchanged() {
		return false, s.refused
	}
	before := s.digest
	data, err := s.read()
	if s.unreadable = err != nil; s.unreadable {
		return false, err
	}
	if s.digest == before && !forced {
		return false, s.refused
	}
	m, err := policyyaml.Parse(s.path, data, s.opts)
	if err == nil {
		err = s.active.admits(m.Version(), s.digest)
	}
	if err == nil {
		err = apply(m)
	}
	if s.refused = err; err != nil {
		return true, err
	}
	s.active = activeFile{m.Version(), s.digest}
	s.log.Info("policy reloaded", "file", s.path, "rules", len(m.Rules()), "version", m.Version(), "digest", s.shortDigest())
	return true, nil
}

// tellNews logs and counts the results of looks.
func (s *fileSource) tellNews(news follow.News, err error) {
	switch {
	case s.unreadable && errors.Is(err, policysign.ErrSignature):
		s.log.Error("policy not signed, old policy stays active", "file", s.path, "err", err)
	case s.unreadable:
		s.log.Error("cannot read policy, old policy stays active", "file", s.path, "err", err)
	case err != nil:
		s.logErrors(err)
	case news == follow.Recovered:
		s.log.Info("policy file readable again, unchanged", "file", s.path)
	}
	s.tell(err)
}

// unchanged reports whether the file's status alone proves that the contents
// are the ones last read.
func (s *fileSource) unchanged() bool {
	info, err := os.Stat(s.path)
	return err == nil && s.settled && !s.unreadable && os.SameFile(info, s.info) &&
		info.ModTime().Equal(s.info.ModTime()) && info.Size() == s.info.Size()
}

// logErrors logs every error of a broken file.
func (s *fileSource) logErrors(err error) {
	mistakes, ok := errors.AsType[policyyaml.Errors](err)
	if !ok {
		event := "policy broken, old policy stays active"
		if errors.Is(err, errFellBehind) {
			event = "policy refused, old policy stays active"
		}
		s.log.Error(event, "file", s.path, "err", err)
		return
	}
	s.log.Error("policy broken, old policy stays active", "file", s.path, "errors", len(mistakes))
	logPolicyErrors(s.log, mistakes)
}

// logPolicyErrors logs the errors of a broken policy, each in a line.
func logPolicyErrors(log *slog.Logger, mistakes policyyaml.Errors) {
	for _, m := range mistakes[:min(len(mistakes), maxLoggedErrors)] {
		m.Value = loggable(m.Path, m.Value)
		log.Error("policy error", "err", m.String())
	}
}

// shortDigest names the contents last read: the same bytes, the same digest.
func (s *fileSource) shortDigest() string { return hex.EncodeToString(s.digest[:6]) }

// errFellBehind is the error of a policy that may be older than the active one. A signature
// cannot prove it is newer: the old policy was signed, too.
var errFellBehind = errors.New("bundle_version must grow")

// An activeFile is the version of the active policy file.
type activeFile struct {
	version int64 // its bundle_version; 0: it has none
	digest  [sha256.Size]byte
}

// admits returns why a file must not replace the active one. The same contents always may,
// and so may any file if the active one has no bundle_version.
func (f activeFile) admits(version int64, digest [sha256.Size]byte) error {
	switch {
	case f.version == 0 || digest == f.digest || version > f.version:
		return nil
	case version == 0:
		return fmt.Errorf("%w: the file has none, and %d is active", errFellBehind, f.version)
	case version == f.version:
		return fmt.Errorf("%w: %d is active with other contents", errFellBehind, version)
	}
	return fmt.Errorf("%w: it is %d, and %d is active; to go back, give the old rules a higher one", errFellBehind, version, f.version)
}
