// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/policy"
)

// Check reads the files that a server with these settings would begin with, and
// opens nothing: neither its store nor its addresses. The policy is nil where it is in
// a database. The errors are those of [New].
func Check(ctx context.Context, c config.Config) (*policy.Matcher, error) {
	for _, t := range []struct {
		setting string
		files   config.TLS
	}{{"tls", c.TLS}, {"admin_tls", c.AdminTLS}} {
		if !t.files.On() {
			continue
		}
		if _, err := newCertificates(t.files, slog.New(slog.DiscardHandler)); err != nil {
			return nil, fmt.Errorf("%s: %w", t.setting, err)
		}
	}
	if c.PolicyDatabase != nil {
		return nil, nil
	}
	source := newSource(c, nil, nil, nil)
	if b, ok := source.(*bundleSource); ok { // its server is not asked
		return nil, b.readKeys()
	}
	return source.load(ctx)
}
