// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/follow"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// examplePolicy is in force where no policy file is named.
//
//go:embed example.yaml
var examplePolicy []byte

const (
	// exampleName stands for the built-in policy where a file's name would.
	exampleName = "example.yaml"

	// settleTime is how old a file's modification time must be before it is
	// trusted to tell versions apart: file systems count it in ticks, and a
	// file can change twice within one.
	settleTime = 3 * time.Second

	// maxLoggedMistakes bounds what one broken file writes to the log.
	maxLoggedMistakes = 100
)

// A source is where the policy is. It is not safe for concurrent use.
type source interface {
	// load reads the policy for the first time.
	load(ctx context.Context) (*policy.Matcher, error)

	// follow applies the policy again when it changes, and when it is told to, until
	// ctx ends. What is broken is logged, and never applied.
	follow(ctx context.Context, reload <-chan reloading)

	// close releases what load opened.
	close()
}

// A reloading tells a source to read the policy again. Where done is not nil, it is
// told what came of it, and has room for that.
type reloading struct{ done chan<- error }

func (r reloading) end(err error) {
	if r.done != nil {
		r.done <- err
	}
}

// newSource returns the source that the settings name.
func (s *Server) newSource() source {
	opts := policy.Options{HashKey: s.store.key}
	if storeurl.IsPostgres(s.config.Policy) {
		return &databaseSource{url: s.config.Policy, opts: opts, log: s.log, apply: s.apply, tell: s.reloads.count, interval: s.config.ReloadInterval}
	}
	if bundle.IsURL(s.config.Policy) {
		return s.newBundleSource(opts)
	}
	return &fileSource{path: s.config.Policy, opts: opts, log: s.log, apply: s.apply, tell: s.reloads.count, interval: s.config.ReloadInterval,
		keyFiles: s.config.PolicyKeys}
}

// A fileSource is the policy file, and what was last seen of it.
type fileSource struct {
	path     string        // empty: the built-in example
	interval time.Duration // between two looks; 0: only when told to
	opts     policy.Options
	log      *slog.Logger
	apply    func(*policy.Matcher) error
	tell     func(error)       // what came of a change
	keyFiles []string          // with the public keys that policies must be signed for
	keys     policysign.Keys   // in them; none: policies need no signature
	force    inForce           // what the next policy must not fall behind
	info     fs.FileInfo       // of the file when it was last read
	settled  bool              // info tells this version from a later one
	digest   [sha256.Size]byte // of the contents last read, good or bad
	looks    follow.Memory
	refused  error // why the contents last read are not in force
}

func (s *fileSource) load(context.Context) (*policy.Matcher, error) {
	if s.path == "" {
		return policyyaml.Parse(exampleName, examplePolicy, s.opts)
	}
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
	m, err := policyyaml.Parse(s.path, data, s.opts)
	if err == nil {
		s.force = inForce{m.Version(), s.digest}
	}
	return m, err
}

func (s *fileSource) close() {}

func (s *fileSource) follow(ctx context.Context, reload <-chan reloading) {
	var tick <-chan time.Time
	if s.interval > 0 {
		ticker := time.NewTicker(s.interval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			s.poll(false)
		case r := <-reload:
			r.end(s.poll(true))
		}
	}
}

// read returns the file's contents, if they are signed where they must be, and
// remembers what they were. The path is
// resolved anew, so that renames and symbolic links that are swapped are seen.
func (s *fileSource) read() ([]byte, error) {
	info, err := os.Stat(s.path) // before the contents: a change in between is then seen later
	if err != nil {
		return nil, err
	}
	if s.info != nil && !info.Mode().IsRegular() && !info.IsDir() { // a pipe can be read once, at the start
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

// poll applies the policy again if its file has changed since it was last
// read. What is wrong with a file is logged once. If forced, the file is read
// in any case, and what came of it is logged. The error says why there may be a
// policy that is not in force.
func (s *fileSource) poll(forced bool) error {
	if s.path == "" {
		if forced {
			s.log.Info("nothing to reload: the built-in example policy is in force")
		}
		return nil
	}
	if !forced && s.unchanged() {
		return nil
	}
	before := s.digest
	data, err := s.read()
	news := s.looks.Note(s.digest != before, err)
	switch {
	case err != nil:
		if forced || news == follow.Failed {
			s.log.Error(unreadable(err), "error", err)
			s.tell(err)
		}
		return err
	case s.digest == before && !forced:
		if news == follow.Recovered {
			s.log.Info("the policy file can be read again, and is what it was", "file", s.path)
			s.tell(s.refused)
		}
		return nil
	}
	s.refused = s.replace(data)
	s.tell(s.refused)
	return s.refused
}

// unchanged reports whether the file's status alone proves that the contents
// are the ones last read.
func (s *fileSource) unchanged() bool {
	info, err := os.Stat(s.path)
	return err == nil && s.settled && !s.looks.Failing() && os.SameFile(info, s.info) &&
		info.ModTime().Equal(s.info.ModTime()) && info.Size() == s.info.Size()
}

// replace puts a policy in force, or says why not.
func (s *fileSource) replace(data []byte) error {
	m, err := policyyaml.Parse(s.path, data, s.opts)
	if err == nil {
		err = s.force.admits(m.Version(), s.digest)
	}
	if err == nil {
		err = s.apply(m)
	}
	if err != nil {
		s.logMistakes(err)
		return err
	}
	s.force = inForce{m.Version(), s.digest}
	s.log.Info("policy reloaded", "file", s.path, "rules", len(m.Rules()), "version", m.Version(), "digest", s.shortDigest())
	return nil
}

// logMistakes logs every mistake of a broken file.
func (s *fileSource) logMistakes(err error) { logMistakes(s.log, s.path, err) }

func logMistakes(log *slog.Logger, file string, err error) {
	mistakes, ok := errors.AsType[policyyaml.Errors](err)
	if !ok {
		msg := "policy is broken; the old one stays in force"
		if errors.Is(err, errFellBehind) {
			msg = "policy is refused; the old one stays in force"
		}
		log.Error(msg, "file", file, "error", err)
		return
	}
	log.Error("policy is broken; the old one stays in force", "file", file, "mistakes", len(mistakes))
	for _, m := range mistakes[:min(len(mistakes), maxLoggedMistakes)] {
		m.Value = loggable(m.Path, m.Value)
		log.Error("policy mistake", "error", m.String())
	}
}

// loggable returns what a log may have of a value in a policy: not what requests are
// matched by, which can be a key or an address. 'mete check' shows it.
func loggable(path, value string) string {
	for _, part := range []string{"match", "/key", "kill_switches", "/tests/", "selector"} {
		if strings.Contains(path, part) {
			return ""
		}
	}
	return value
}

// shortDigest names the contents last read: the same bytes, the same digest.
func (s *fileSource) shortDigest() string { return hex.EncodeToString(s.digest[:6]) }
