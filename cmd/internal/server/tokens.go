// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
)

// followTokens puts the tokens in files in force as these change, until ctx ends: one
// that has leaked is taken back without a restart. What is no token never replaces one.
func (s *Server) followTokens(ctx context.Context) {
	known := slices.Clone(s.config.AdminTokens)
	if !slices.ContainsFunc(known, func(t config.AdminToken) bool { return t.File != "" }) {
		return
	}
	ticker := time.NewTicker(certificateInterval)
	defer ticker.Stop()
	problems := map[string]string{} // of the file, said last
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for i := range known {
			t := &known[i]
			if t.File == "" {
				continue
			}
			next, err := config.ReadToken(t.File)
			switch {
			case err != nil && problems[t.File] != err.Error():
				problems[t.File] = err.Error()
				s.log.Error("the new token is not used; the old one stays", "name", t.Name, "error", err)
			case err != nil || next == t.Token:
			default:
				t.Token = next
				if err := s.access.know(known); err != nil {
					s.log.Error("the tokens cannot be replaced", "error", err)
					continue
				}
				delete(problems, t.File)
				s.log.Info("token replaced", "name", t.Name)
			}
		}
	}
}
