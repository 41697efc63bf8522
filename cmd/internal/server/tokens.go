// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/internal/follow"
)

// followTokens puts the tokens in files in force as these change, until ctx ends: one
// that has leaked is taken back without a restart. What is no token never replaces one.
func (s *Server) followTokens(ctx context.Context) {
	known := slices.Clone(s.config.AdminTokens)
	if !slices.ContainsFunc(known, func(t config.AdminToken) bool { return t.File != "" }) {
		return
	}
	looks := make([]follow.Memory, len(known))
	follow.Every(ctx, certificateInterval, func() {
		for i := range known {
			if known[i].File != "" {
				s.lookAtToken(known, i, &looks[i])
			}
		}
	})
}

// lookAtToken reads the file of the i'th token, and puts a new token in force.
func (s *Server) lookAtToken(known []config.AdminToken, i int, looks *follow.Memory) {
	name, before := known[i].Name, known[i].Token
	next, err := config.ReadToken(known[i].File)
	changed := err == nil && next != before
	if changed {
		known[i].Token = next
		s.access.know(known)
	}
	switch looks.Note(changed, err) {
	case follow.Failed:
		s.log.Error("the new token is not used; the old one stays", "name", name, "error", err)
	case follow.Changed:
		s.log.Info("token replaced", "name", name)
	case follow.Recovered:
		s.log.Info("the token can be read again, and is what it was", "name", name)
	}
}
