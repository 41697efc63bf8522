// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// openOverrides puts the overrides in force that were made before. Where those of a
// shared store cannot be read, the server begins without: others may have them in
// force, and it follows as soon as it can. A file of its own that cannot be read is
// for people to mend.
func (s *Server) openOverrides(ctx context.Context, base *policy.Matcher) error {
	documents, err := s.documents()
	if err != nil {
		return err
	}
	s.overrides, err = overrides.New(base, overrides.Config{Documents: documents, Apply: s.limiter.SetPolicy, Cleared: s.forgetRule, Logger: s.log})
	if err != nil {
		return err
	}
	switch err := s.overrides.Load(ctx); {
	case err == nil:
	case s.store.remote == nil:
		return fmt.Errorf("%s: %w; mend it, or move it away to begin with none", s.overridesFile(), err)
	default:
		s.log.Error("cannot read the overrides in the store: NONE of them is in force here", "error", err)
	}
	s.logOverrides()
	return nil
}

// forgetRule drops what this server knows of a rule whose buckets another server has cleared.
func (s *Server) forgetRule(rule string) {
	if err := s.limiter.ForgetRule(context.Background(), rule); err != nil {
		s.log.Error("cannot forget the buckets of a rule that was reset: a restart does", "rule", rule, "error", err)
		return
	}
	s.log.Info("rule reset", "rule", rule)
}

// documents is where overrides are kept: in the store or, where that is in memory,
// beside the file that it is saved to. It is nil where there is none.
func (s *Server) documents() (store.Documents, error) {
	if s.store.remote != nil {
		return s.store.remote, nil
	}
	u, err := storeurl.Parse(s.config.Store)
	if err != nil || u.File == "" {
		return nil, err
	}
	d, err := openDocumentFile(u.File)
	if err != nil {
		return nil, fmt.Errorf("overrides: %w", err)
	}
	return d, nil
}

// overridesFile is the file that documents keeps the overrides of a store in memory in.
func (s *Server) overridesFile() string {
	u, _ := storeurl.Parse(s.config.Store) // which documents has read without an error
	return u.File + "." + overrides.DefaultName
}

// logOverrides says at the start what is in force in spite of the policy.
func (s *Server) logOverrides() {
	var filed []string
	for _, o := range s.overrides.List() {
		if o.State != overrides.StateInForce {
			continue
		}
		if o.Source == overrides.SourceFile {
			filed = append(filed, o.ID)
		}
		if o.Action.Kind().Suspends {
			s.log.Warn("NOTHING may be limited: an override of all rules is in force", "id", o.ID, "action", string(o.Action),
				"author", o.Author, "reason", o.Reason, "expires_at", o.ExpiresAt)
		}
	}
	if len(filed) > 0 {
		s.log.Info("overrides of the policy in force", "ids", strings.Join(filed, ","))
	}
}
