// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"

	"github.com/metehq/mete/cmd/internal/denials"
)

// openDenials makes the denial log, unless nobody would see it.
func (s *Server) openDenials() {
	c := s.config.DenialLog
	if c.Interval == 0 || !s.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	s.denials = denials.New(denials.Config{
		Logger: s.log, Interval: c.Interval, PerSecond: c.MaxLines, Raw: c.Raw, Key: s.store.keyFor("denial log"),
	})
}

// logDenials is the hook of the denial log; nil where there is none.
func (s *Server) logDenials() denialHook {
	if s.denials == nil {
		return nil
	}
	return s.denials.Record
}

// runDenials writes what bursts of denials leave, until ctx ends.
func (s *Server) runDenials(ctx context.Context) {
	if s.denials != nil {
		s.denials.Run(ctx)
	}
}
