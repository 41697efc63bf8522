// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"io"
	"log/slog"
	"strings"
)

// NewLog returns the log of the service. In JSON it has the field names of the original.
func NewLog(w io.Writer, s *Settings) *slog.Logger {
	options := &slog.HandlerOptions{Level: levelOf(s.LogLevel)}
	if s.LogFormat != "json" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) > 0 {
			return a
		}
		switch a.Key {
		case slog.TimeKey:
			a.Key = "@timestamp"
		case slog.MessageKey:
			a.Key = "@message"
		case slog.LevelKey:
			name := strings.ToLower(a.Value.String())
			if name == "warn" {
				name = "warning"
			}
			a.Value = slog.StringValue(name)
		}
		return a
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

func levelOf(name string) slog.Level {
	switch name {
	case "trace", "debug":
		return slog.LevelDebug
	case "warn", "warning":
		return slog.LevelWarn
	case "error", "fatal", "panic":
		return slog.LevelError
	}
	return slog.LevelInfo
}
